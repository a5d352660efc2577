//! Parts of answers that several commands have: each is a part of the documented JSON, and has a form for people.

mod action_label;
mod counts;
mod entity;
mod level;
mod limit;
mod namespace;
mod refusal;
mod standing;
mod status;
mod wait_time;

pub(crate) use action_label::action_label;
pub(crate) use counts::CountsView;
pub(crate) use entity::{EntityView, entity_table};
pub(crate) use level::{LevelView, OwnedLevel};
pub(crate) use limit::{LimitView, limit_cells, limit_table, limit_texts, limit_views, remark_table};
pub(crate) use namespace::{NamespaceView, namespace_table};
pub(crate) use refusal::RefusalView;
pub(crate) use standing::{StandView, StandingView, standing_views};
pub(crate) use status::StatusView;
pub(crate) use wait_time::{WaitTime, micros};
