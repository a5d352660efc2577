//! Views that several commands share: each is a part of the documented JSON, and has a text form.

mod action_label;
mod counts;
mod demand_status;
mod denial;
mod entity;
mod level;
mod limit;
mod namespace;
mod status;
mod wait_time;

pub(crate) use action_label::action_label;
pub(crate) use counts::CountsView;
pub(crate) use demand_status::{DemandStatusView, LimitStatusView, bucket_views};
pub(crate) use denial::DenialView;
pub(crate) use entity::{EntityView, entity_table};
pub(crate) use level::{LevelView, OwnedLevel};
pub(crate) use limit::{LimitView, limit_cells, limit_table, limit_texts, limit_views, remark_table};
pub(crate) use namespace::{NamespaceView, namespace_table};
pub(crate) use status::StatusView;
pub(crate) use wait_time::{WaitTime, micros};
