//! Who a message comes from.

use super::Extra;

open_set! {
    /// Who a message comes from.
    Source by "kind" {
        /// The user.
        User(Extra) = "user",
        /// A plugin.
        Plugin(PluginSource) = "plugin",
        /// Another agent.
        Agent(AgentSource) = "agent",
    }
}

record! {
    /// A plugin as a source.
    PluginSource {
        /// The plugin's name.
        plugin: String = "plugin",
    }
    new(plugin: impl Into<String>)
}

record! {
    /// An agent as a source.
    AgentSource {
        /// The agent's id.
        agent_id: String = "agentId",
    }
    new(agent_id: impl Into<String>)
}

impl Source {
    /// The user.
    #[must_use]
    pub fn user() -> Self {
        Self::User(Extra::new())
    }

    /// A plugin.
    #[must_use]
    pub fn plugin(name: impl Into<String>) -> Self {
        Self::Plugin(PluginSource::new(name))
    }

    /// Another agent.
    #[must_use]
    pub fn agent(id: impl Into<String>) -> Self {
        Self::Agent(AgentSource::new(id))
    }
}
