//! Every type against the shapes of V's table, and what is unknown in them.

use serde::{Deserialize, Serialize};

use super::*;
use crate::error::ErrorKind;
use crate::event::{Event, JsonText, NewEvent, PlainEvent, SurfaceOp, Time, TypedEvent};

/// Reads `data` as `T`, writes it, and expects the same text.
fn same<T: TypedEvent>(data: &str) -> T {
    let event = NewEvent::raw(T::NAME, data).unwrap().into_event(0, Time::from_millis(0));
    let typed: T = event.read().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(JsonText::from_serialize(&typed).unwrap().as_str(), data);
    assert_eq!(serde_json::to_string(&typed).unwrap(), data);
    typed
}

fn refused<T: TypedEvent>(data: &str, text: &str) {
    let event = NewEvent::raw(T::NAME, data).unwrap().into_event(3, Time::from_millis(0));
    let Err(error) = event.read::<T>() else { panic!("{data} was read") };
    assert_eq!(error.kind(), ErrorKind::InvalidValue);
    assert!(error.to_string().contains(text), "{error}");
}

#[test]
fn turns_and_steps() {
    let start: TurnStart = same(r#"{"turn":1,"trigger":{"kind":"message","source":{"kind":"user"}}}"#);
    assert_eq!(start, TurnStart::new(1, Trigger::message(Source::user())));
    same::<TurnStart>(r#"{"turn":1,"trigger":{"kind":"continuation"}}"#);
    same::<TurnStart>(r#"{"turn":1,"trigger":{"kind":"injection","source":{"kind":"agent","agentId":"a"}}}"#);
    for reason in [
        r#"{"kind":"completed"}"#,
        r#"{"kind":"aborted"}"#,
        r#"{"kind":"aborted","reason":"session/cancel"}"#,
        r#"{"kind":"error","step":2,"message":"m"}"#,
        r#"{"kind":"error","step":2,"message":"m","code":"c"}"#,
        r#"{"kind":"disposed"}"#,
        r#"{"kind":"max-tokens"}"#,
        r#"{"kind":"interrupted"}"#,
    ] {
        let end: TurnEnd = same(&format!(r#"{{"turn":1,"reason":{reason}}}"#));
        assert!(!matches!(end.reason, TurnEndReason::Other(_)), "{reason}");
    }
    assert_eq!(same::<StepStart>(r#"{"turn":1,"step":2}"#), StepStart::new(1, 2));
    assert_eq!(same::<StepEnd>(r#"{"turn":1,"step":2}"#), StepEnd::new(1, 2));
}

#[test]
fn messages_and_blocks() {
    let blocks = concat!(
        r#"[{"type":"text","text":"t","cache":"ephemeral"},{"type":"reasoning","text":"r"},"#,
        r#"{"type":"tool-call","id":"c","name":"n","arguments":"{bad"},"#,
        r#"{"type":"tool-result","toolCallId":"c","content":[{"type":"text","text":"x"}],"isError":true,"cache":{"a": 1}},"#,
        r#"{"type":"image","url":"u","mimeType":"image/png","cache":1}]"#
    );
    let message: UserMessage = same(&format!(r#"{{"content":{blocks},"source":{{"kind":"user"}}}}"#));
    assert!(!message.content.iter().any(|block| matches!(block, Block::Other(_))));
    same::<ContextMessage>(r#"{"content":[],"source":{"kind":"plugin","plugin":"p"}}"#);
    same::<SteeringMessage>(r#"{"turn":4,"content":[],"source":{"kind":"user"}}"#);
    let answer: AssistantMessage = same(concat!(
        r#"{"turn":1,"step":1,"content":[],"usage":{"inputTokens":1,"outputTokens":2,"#,
        r#""cacheReadTokens":3,"cacheWriteTokens":4,"reasoningTokens":5}}"#
    ));
    assert_eq!(answer.usage.unwrap().reasoning_tokens, Some(5));
    same::<ToolCall>(r#"{"turn":1,"step":1,"callId":"c","name":"n","arguments":"{bad"}"#);
    let result: ToolResult = same(
        r#"{"turn":1,"step":1,"callId":"c","content":[],"isError":true,"error":{"name":"E","code":"x"}}"#,
    );
    assert_eq!(result.error, Some(ToolError::new("E", "x")));
}

#[test]
fn chunks() {
    for chunk in [
        r#"{"type":"block-start","index":0,"blockType":"text"}"#,
        r#"{"type":"text-delta","index":0,"text":" me"}"#,
        r#"{"type":"reasoning-delta","index":0,"text":"\n"}"#,
        r#"{"type":"tool-call-delta","index":1,"id":"c","name":"n","argumentsDelta":"{"}"#,
        r#"{"type":"tool-call-delta","index":1,"id":"c","argumentsDelta":"{"}"#,
        r#"{"type":"block-end","index":0,"block":{"type":"text","text":"x"}}"#,
        r#"{"type":"usage","usage":{"inputTokens":1,"outputTokens":2}}"#,
        r#"{"type":"finish","reason":{"kind":"stop"}}"#,
        r#"{"type":"finish","reason":{"kind":"tool-calls"}}"#,
        r#"{"type":"finish","reason":"length"}"#,
    ] {
        let typed: AssistantChunk = same(&format!(r#"{{"turn":1,"step":1,"chunk":{chunk}}}"#));
        assert!(!matches!(typed.chunk, Chunk::Other(_)), "{chunk}");
    }
}

#[test]
fn what_is_unknown_comes_back_unchanged() {
    // Members that a type does not know, at every level, with their spelling.
    let start: TurnStart = same(
        r#"{"turn":1,"trigger":{"kind":"message","source":{"kind":"user","ref":1.50},"n":[1, 2]},"z":"\ud800"}"#,
    );
    assert_eq!(start.extra.get("z").unwrap().raw(), r#""\ud800""#);
    same::<TurnEnd>(r#"{"turn":1,"reason":{"kind":"completed","tokens":1E3}}"#);
    // Kinds that a set does not know, and values that name none.
    for source in [r#"{"kind":"webhook", "ref":25.0}"#, r#""user""#, "null", r#"{"kind":7}"#, "[1.0]"] {
        let message: UserMessage = same(&format!(r#"{{"content":[{source}],"source":{source}}}"#));
        assert_eq!(message.source, Source::Other(JsonText::parse(source).unwrap()));
    }
}

#[test]
fn numbers_and_duplicates_read_as_everywhere() {
    let event = NewEvent::raw("step/start", r#"{"turn":1,"step":9,"turn":2.6e1,"st\u0065p":2.0}"#).unwrap();
    let read: StepStart = event.into_event(0, Time::from_millis(0)).read().unwrap();
    assert_eq!(read, StepStart::new(26, 2));
}

#[test]
fn faults_name_the_path() {
    refused::<StepStart>(r#"{"turn":1}"#, "read event 3 as step/start: expected a value at $.step");
    refused::<StepStart>("[]", "expected an object at $");
    refused::<StepStart>(r#"{"turn":1,"step":1.5}"#, "expected an integer >= 0 at $.step");
    refused::<ContextMessage>(
        r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":1}],"source":{"kind":"user"}}"#,
        "expected a string at $.content[1].text",
    );
    refused::<ContextMessage>(
        r#"{"content":[{"type":"text","text":"\ud800"}],"source":{"kind":"user"}}"#,
        "without lone surrogates (read the event's data as text) at $.content[0].text",
    );
    let event = NewEvent::raw("turn/end", "{}").unwrap().into_event(3, Time::from_millis(0));
    assert_eq!(event.read::<TurnStart>().unwrap_err().to_string(), "event 3 is a turn/end, not a turn/start");
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| {
        let open = r#"{"type":"tool-result","toolCallId":"c","content":["#.repeat(levels);
        format!(r#"{{"content":[{open}{}],"source":{{"kind":"user"}}}}"#, "]}".repeat(levels))
    };
    same::<UserMessage>(&nested(255));
    refused::<UserMessage>(&nested(256), "nests deeper than 512 levels");
    refused::<UserMessage>(&nested(30_000), "nests deeper than 512 levels");
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cron {
    schedule: String,
}

impl Kind<Trigger> for Cron {
    const NAME: &'static str = "cron";
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Silent;

impl Kind<TurnEndReason> for Silent {
    const NAME: &'static str = "silent";
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Clash {
    kind: String,
}

impl Kind<Source> for Clash {
    const NAME: &'static str = "clash";
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Audio {
    seconds: f64,
    inside: Vec<Block>,
}

impl Kind<Block> for Audio {
    const NAME: &'static str = "audio";
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Heard {
    by: Source,
    what: Audio,
}

impl PlainEvent for Heard {
    const TYPE: &'static str = "audio/heard";
}

#[test]
fn plugins_declare_kinds_of_their_own() {
    let cron = Cron { schedule: "@daily".into() };
    let trigger = Trigger::declare(&cron).unwrap();
    assert_eq!(serde_json::to_string(&trigger).unwrap(), r#"{"kind":"cron","schedule":"@daily"}"#);
    assert_eq!(trigger.read::<Cron>().unwrap(), Some(cron));
    assert_eq!(trigger.kind(), "cron");
    assert_eq!(Trigger::continuation().read::<Cron>().unwrap(), None);
    let odd = Trigger::Other(JsonText::parse(r#"{"kind":"cron"}"#).unwrap());
    assert!(odd.read::<Cron>().unwrap_err().to_string().contains("read the kind \"cron\": missing field"));

    let silent = TurnEndReason::declare(&Silent).unwrap();
    assert_eq!(serde_json::to_string(&silent).unwrap(), r#"{"kind":"silent"}"#);
    assert_eq!(silent.read::<Silent>().unwrap(), Some(Silent));

    let clash = Source::declare(&Clash { kind: "x".into() }).unwrap_err();
    assert!(clash.to_string().contains("without a member \"kind\""), "{clash}");
}

#[test]
fn plugins_append_and_read_events_as_typed_as_ours() {
    let what = Audio { seconds: 1.5, inside: vec![Block::text("hi")] };
    let block = Block::declare(&what).unwrap();
    let message = UserMessage::new(vec![block], Source::user());
    let new = NewEvent::message(&message, SurfaceOp::Append).unwrap();
    let event = new.into_event(0, Time::from_millis(0));
    let read: UserMessage = event.read().unwrap();
    assert_eq!(read.content[0].read::<Audio>().unwrap().as_ref(), Some(&what));

    let heard = Heard { by: Source::agent("a"), what };
    let event = NewEvent::plain(&heard).unwrap().into_event(1, Time::from_millis(0));
    assert_eq!((event.event_type(), event.surface_op()), ("audio/heard", None));
    assert_eq!(Event::parse_line(&event.to_line()).unwrap().read::<Heard>().unwrap(), heard);
}
