//! Tasks that await replies get the same results as threads that wait.

use std::sync::Arc;

use tollgate_catalog::{Level, NewEntity, PageRequest, Registry};
use tollgate_core::{Limit, Limits};
use tollgate_store::Memory;

#[tokio::test(flavor = "multi_thread")]
async fn tasks_on_any_thread_await_the_same_answers() -> Result<(), Box<dyn std::error::Error>> {
    let registry = Registry::new(Arc::new(Memory::default()));
    let catalog = registry.open_or_register("default").await?;
    catalog.create_entity(NewEntity::new("parent")).await?;
    let tasks: Vec<_> = (0..20)
        .map(|index| {
            let catalog = catalog.clone();
            tokio::spawn(async move {
                let (id, limits) = (format!("child-{index}"), Limits::new([Limit::per_minute("rpm", 10)])?);
                catalog.create_entity(NewEntity::new(&id).parent("parent").cascades(true)).await?;
                catalog.set_limits(Level::System, &limits).await?;
                let links = catalog.chain(&id, "gpt-4").await?.links.len();
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(links)
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await?.map_err(|error| error.to_string())?, 2);
    }
    assert_eq!(catalog.children("parent", PageRequest::default()).await?.items.len(), 20);
    assert_eq!(catalog.entity("parent").await?.map(|parent| parent.children), Some(20));
    Ok(())
}
