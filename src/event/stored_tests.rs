use super::*;

fn canonical(line: &str) -> Event {
    let event = Event::parse_line(line).unwrap();
    assert!(event.verbatim_line().is_none(), "{line}");
    assert_eq!(event.to_line(), line);
    event
}

fn odd(line: &str) -> Event {
    let event = Event::parse_line(line).unwrap();
    assert!(event.verbatim_line().is_some(), "{line}");
    assert_eq!(event.to_line(), line);
    event
}

#[test]
fn canonical_lines_are_fields_alone() {
    let event = canonical(r#"{"type":"turn/start","seq":0,"time":1782133869872,"data":{"turn":1}}"#);
    assert_eq!((event.seq(), event.class(), event.data().as_str()), (0, Class::TurnStart, r#"{"turn":1}"#));
    let event = canonical(concat!(
        r#"{"type":"user/message","seq":7,"time":1.50,"data":null,"sourceEventSeqs":[3,1,2],"#,
        r#""surfaceOp":{"op":"replace","start":3,"end":1},"origin":{"a": 1},"ignorable":true}"#
    ));
    assert_eq!(event.sources(), Some(&[3, 1, 2][..]));
    assert_eq!(event.surface_op(), Some(SurfaceOp::Replace { start: 3, end: 1 }));
    assert_eq!(event.extra(), Some(r#""origin":{"a": 1},"ignorable":true"#));
    assert_eq!(event.extra_members().count(), 2);
    assert_eq!(event.time().spelling(), "1.50");
    canonical(r#"{"type":"x\"\\\u0001/é","seq":0,"time":0,"data":"\ud800","sourceEventSeqs":[]}"#);
}

#[test]
fn other_spellings_keep_their_line() {
    let event = odd(r#"{"seq":26.0,"type":"turn\/start","data":{},"time":1}"#);
    assert_eq!((event.seq(), event.event_type()), (26, "turn/start"));
    assert_eq!(odd(r#"{"type":"a","seq":1,"seq":2.6e1,"time":0,"data":1,"data":2}"#).seq(), 26);
    assert_eq!(odd(r#"{"type":"a","seq":1,"time":0,"data":1,"d\u0061ta":2}"#).data().as_str(), "2");
    assert_eq!(odd("{\"type\":\"a\",\"seq\":1,\"time\":0,\"data\":[1,\r2]}\r").data().as_str(), "[1, 2]");
    assert_eq!(odd(r#"{"type":"a","seq":1,"time":0,"data":1,"surfaceOp":null}"#).surface_op(), None);
    assert_eq!(odd(r#"{"type":"\ud800","seq":1,"time":0,"data":1}"#).event_type(), "\u{FFFD}");
    assert_eq!(
        odd(r#"{"x":1,"type":"a","seq":1,"y" : 2,"time":0,"data":1}"#).extra(),
        Some(r#""x":1,"y":2"#)
    );
}

#[test]
fn what_is_no_event_is_refused_by_name() {
    let cases = [
        ("", ErrorKind::InvalidJson, "expected an object at $"),
        ("null", ErrorKind::InvalidJson, "expected an object at $"),
        ("\u{feff}{}", ErrorKind::InvalidJson, "expected an object"),
        (r#"{"type":"a","seq":0,"time":0,"data":1} x"#, ErrorKind::InvalidJson, "text behind the value"),
        (r#"{"type":"a","seq":0,"time":0,"data":1,}"#, ErrorKind::InvalidJson, "member name"),
        (r#"{"type":"a","seq":0,"time":0,"data":[1,{"k":1e999}]}"#, ErrorKind::InvalidValue, "$.data[1].k"),
        ("{\"type\":\"a\",\n\"seq\":0,\"time\":0,\"data\":1}", ErrorKind::InvalidJson, "a line break"),
        (r#"{"seq":0,"time":0,"data":1}"#, ErrorKind::InvalidValue, "type must be a string"),
        (r#"{"type":1,"seq":0,"time":0,"data":1}"#, ErrorKind::InvalidValue, "type must be a string"),
        (r#"{"type":"a","seq":-1,"time":0,"data":1}"#, ErrorKind::InvalidValue, "seq must be an integer"),
        (r#"{"type":"a","seq":0.5,"time":0,"data":1}"#, ErrorKind::InvalidValue, "seq must be an integer"),
        (r#"{"type":"a","seq":0,"time":"0","data":1}"#, ErrorKind::InvalidValue, "time must be a number"),
        (r#"{"type":"a","seq":0,"time":0}"#, ErrorKind::InvalidValue, "data is missing"),
        (r#"{"type":"a","seq":0,"time":0,"data":1,"surfaceOp":"x"}"#, ErrorKind::Marker, "surfaceOp must be"),
        (
            r#"{"type":"a","seq":0,"time":0,"data":1,"sourceEventSeqs":[0,-1]}"#,
            ErrorKind::Sources,
            "integers >= 0, found -1",
        ),
    ];
    for (line, kind, text) in cases {
        let error = Event::parse_line(line).unwrap_err();
        assert_eq!(error.kind(), kind, "{line}: {error}");
        assert!(error.to_string().contains(text), "{line}: {error}");
    }
}

#[test]
fn a_checker_gets_the_event_and_its_faults() {
    let line = r#"{"type":"user/message","seq":0,"time":0,"data":1,"sourceEventSeqs":1,"surfaceOp":[]}"#;
    let parsed = Event::parse_line_lenient(line).unwrap();
    let kinds: Vec<_> = parsed.faults.iter().map(EnvelopeFault::kind).collect();
    assert_eq!(kinds, [ErrorKind::Sources, ErrorKind::Marker]);
    assert_eq!(parsed.event.to_line(), line);
}

#[test]
fn a_kept_line_goes_only_to_its_own_place() {
    let line = r#"{"seq":3,"type":"a","time":5,"data":1,"x":2}"#;
    let event = Event::parse_line(line).unwrap();
    let same = NewEvent::from_event(event.clone()).into_event(3, Time::from_millis(9));
    assert_eq!(same, event);
    let moved = NewEvent::from_event(event.clone()).into_event(4, Time::from_millis(9));
    assert_eq!(moved.to_line(), r#"{"type":"a","seq":4,"time":5,"data":1,"x":2}"#);
    let changed = NewEvent::from_event(event).with_sources(vec![1]).into_event(3, Time::from_millis(9));
    assert_eq!(changed.to_line(), r#"{"type":"a","seq":3,"time":5,"data":1,"sourceEventSeqs":[1],"x":2}"#);
}

#[test]
fn extra_fields_come_as_an_object() {
    let new = || NewEvent::raw("a", "1").unwrap();
    let event = new().with_extra("{ \"o\" : [1,\n2], \"p\":\"\\ud800\" }").unwrap();
    assert_eq!(event.extra(), Some("\"o\":[1, 2],\"p\":\"\\ud800\""));
    assert_eq!(new().with_extra("{}").unwrap().extra(), None);
    for (text, kind) in [
        ("[]", ErrorKind::InvalidValue),
        ("{\"d\\u0061ta\":1}", ErrorKind::InvalidValue),
        ("{", ErrorKind::InvalidJson),
    ] {
        assert_eq!(new().with_extra(text).unwrap_err().kind(), kind, "{text}");
    }
    let line = event.into_event(0, Time::from_millis(1)).to_line();
    assert_eq!(line, "{\"type\":\"a\",\"seq\":0,\"time\":1,\"data\":1,\"o\":[1, 2],\"p\":\"\\ud800\"}");
}

/// Every line with one byte changed, taken out or doubled is the same to both ways of reading, where the short one takes
/// it at all; and the short one takes what it is for.
#[test]
fn the_short_way_and_the_general_way_agree() {
    let lines = [
        r#"{"type":"assistant/chunk","seq":10,"time":1782133869868,"data":{"turn":1,"step":2,"chunk":{"a":"\n"}}}"#,
        r#"{"type":"assistant/chunk","seq":1,"time":2,"data":{"turn":1,"step":20,"chunk":{"type":"text-delta","index":0,"text":"é\u00e9\"x"}}}"#,
        r#"{"type":"assistant/chunk","seq":1,"time":2,"data":{"turn":1,"step":2,"chunk":{"type":"tool-call-delta","index":1,"id":"c","name":"n","argumentsDelta":""}}}"#,
        r#"{"type":"assistant/chunk","seq":1,"time":2,"data":{"turn":1,"step":2,"chunk":{"type":"block-start","index":1,"blockType":"text"}}}"#,
        r#"{"type":"x-y_z.1:2","seq":0,"time":0,"data":null}"#,
        r#"{"type":"user/message","seq":7,"time":5,"data":[1, "é",{}],"surfaceOp":"append"}"#,
        r#"{"type":"user/message","seq":7,"time":5,"data":"","sourceEventSeqs":[],"surfaceOp":"append"}"#,
        r#"{"type":"t","seq":7,"time":5,"data":-1e3,"sourceEventSeqs":[0,12],"surfaceOp":{"op":"replace","start":0,"end":12}}"#,
    ];
    let bytes: Vec<&str> =
        r#"0 1 9 - . e , : " \ { } [ ] / a A n é"#.split(' ').chain([" ", "\t", "\r", "\n"]).collect();
    let mut taken = 0;
    for line in lines {
        assert!(canonical::parse(line).is_some(), "{line}");
        for (at, old) in line.char_indices() {
            let (front, back) = (&line[..at], &line[at + old.len_utf8()..]);
            let inserted = bytes
                .iter()
                .flat_map(|byte| [format!("{front}{byte}{back}"), format!("{front}{byte}{old}{back}")]);
            for changed in inserted.chain([format!("{front}{back}")]) {
                let Some(short) = canonical::parse(&changed) else { continue };
                let general =
                    Event::parse_any_line(&changed).unwrap_or_else(|error| panic!("{changed}: {error}"));
                assert!(general.faults.is_empty(), "{changed}");
                assert_eq!(short, general.event, "{changed}");
                assert_eq!(short.to_line(), changed);
                taken += 1;
            }
        }
    }
    assert!(taken > 1000, "{taken}");
}
