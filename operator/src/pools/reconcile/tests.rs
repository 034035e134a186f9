//! A pass against an API server that answers as it is told to: what is sent, and what becomes of refusals.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::{Method, Request, Response, StatusCode};
use bifold_crds::{conditions::holds, keys};
use bifold_runtime::lease::Fence;
use http_body_util::BodyExt as _;
use kube::{
    Client,
    client::Body,
    runtime::{
        reflector::{self, store::Writer as StoreWriter},
        watcher::Event,
    },
};
use serde_json::{Value, json};

use super::*;
use crate::{
    events,
    pools::testing::{Model, NodeExt as _, PoolExt as _, node, pool},
};

/// Takes every write and remembers it; refuses those under `refuse`.
#[derive(Clone, Default)]
struct Server {
    writes: Arc<Mutex<Vec<(Method, String, Value)>>>,
    refuse: Arc<Mutex<Option<(&'static str, u16)>>>,
    away: Arc<AtomicBool>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        Client::new(tower::service_fn(move |request| server.clone().answer(request)), "default")
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        if self.away.load(Ordering::SeqCst) {
            return Err(std::io::Error::other("connection refused"));
        }
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if let Some((under, code)) = *self.refuse.lock().unwrap()
            && path.contains(under)
        {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                "reason": if code == 403 { "Forbidden" } else { "Conflict" }, "message": "no",
            });
            return Ok(response(code, &status));
        }
        let answer = match method {
            Method::PATCH => json!({ "metadata": {}, "spec": { "selector": {} } }),
            _ => body.clone(),
        };
        self.writes.lock().unwrap().push((method, path, body));
        Ok(response(200, &answer))
    }

    /// `VERB path`, without events.
    fn sent(&self) -> Vec<String> {
        let mut writes = self.writes.lock().unwrap();
        let told = writes.drain(..).filter(|(_, path, _)| !path.contains("events"));
        told.map(|(method, path, _)| format!("{method} {path}")).collect()
    }
}

fn response(code: u16, body: &Value) -> Response<Body> {
    let code = StatusCode::from_u16(code).unwrap();
    Response::builder().status(code).body(Body::from(body.to_string().into_bytes())).unwrap()
}

fn filled<K>(objects: impl Iterator<Item = K>) -> reflector::Store<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static,
{
    let (store, mut writer): (_, StoreWriter<K>) = reflector::store();
    writer.apply_watcher_event(&Event::Init);
    for object in objects {
        writer.apply_watcher_event(&Event::InitApply(object));
    }
    writer.apply_watcher_event(&Event::InitDone);
    // The store lives as long as the writer.
    std::mem::forget(writer);
    store
}

fn context(model: &Model, server: &Server) -> Arc<Context> {
    let metrics = Arc::<Metrics>::default();
    let client = server.client();
    let caches = Caches {
        pools: filled(model.pools.values().cloned()),
        nodes: filled(model.nodes.values().cloned()),
        classes: filled(model.classes.values().cloned()),
        agents: filled(model.agents.values().cloned()),
    };
    Arc::new(Context {
        caches,
        writer: Writer::new(client.clone(), Fence::open(), metrics.clone()),
        recorder: events::recorder(client, "test".into()),
        metrics,
        memory: Mutex::default(),
    })
}

async fn pass(model: &Model, server: &Server) -> Result<Action, Error> {
    reconcile(Arc::new(model.pools["p"].clone()), context(model, server)).await
}

#[tokio::test]
async fn a_new_pool_is_written_in_an_order_that_can_be_taken_back() {
    let server = Server::default();
    let mut new = pool("p").default_classes();
    new.metadata.finalizers = None;
    pass(&Model::of([new], [node("n", "p")]), &server).await.unwrap();
    assert_eq!(
        server.sent(),
        [
            "PATCH /apis/bifold.dev/v1alpha1/windowsnodepools/p",
            "PATCH /api/v1/nodes/n",
            "PATCH /api/v1/nodes/n",
            "POST /apis/node.k8s.io/v1/runtimeclasses",
            "PATCH /apis/bifold.dev/v1alpha1/windowsnodepools/p/status",
        ]
    );
}

#[tokio::test]
async fn a_node_is_written_with_what_was_seen_and_only_what_is_ours() {
    let server = Server::default();
    let model = Model::of([pool("p")], [node("n", "p").taint("a=b:NoSchedule")]);
    pass(&model, &server).await.unwrap();
    let writes = server.writes.lock().unwrap();
    let (taints, labels) = (&writes[0].2, &writes[1].2);
    assert_eq!(taints["metadata"]["resourceVersion"], "1");
    assert_eq!(taints["spec"]["taints"].as_array().unwrap().len(), 2);
    assert!(taints["metadata"]["annotations"][keys::APPLIED_ANNOTATION].is_string());
    assert_eq!(labels["metadata"]["uid"], "uid-n");
    let mut set: Vec<&String> = labels["metadata"]["labels"].as_object().unwrap().keys().collect();
    set.sort();
    assert_eq!(set, [keys::POOL_LABEL, keys::WINDOWS_BUILD_LABEL]);
}

#[tokio::test]
async fn an_unchanged_world_is_not_written_to() {
    let server = Server::default();
    let mut model = Model::of([pool("p").default_classes()], [node("n", "p"), node("m", "p")]);
    model.settle();
    pass(&model, &server).await.unwrap();
    let status = server.writes.lock().unwrap()[0].2["status"].clone();
    server.sent();
    model.pools.get_mut("p").unwrap().status = serde_json::from_value(status).unwrap();
    for _ in 0..3 {
        pass(&model, &server).await.unwrap();
        assert_eq!(server.sent(), [""; 0]);
    }
}

#[tokio::test]
async fn a_refusal_reaches_the_status_and_keeps_nothing_else_from_being_written() {
    let server = Server::default();
    *server.refuse.lock().unwrap() = Some(("/nodes/", 403));
    let model = Model::of([pool("p").default_classes()], [node("n", "p")]);
    let error = pass(&model, &server).await.unwrap_err();
    let context = context(&model, &server);
    let again = error_policy(Arc::new(pool("p")), &error, context);
    assert_eq!(again, Action::requeue(FORBIDDEN));
    let (_, _, status) =
        server.writes.lock().unwrap().iter().find(|w| w.1.ends_with("status")).cloned().unwrap();
    let conditions: Vec<_> = serde_json::from_value(status["status"]["conditions"].clone()).unwrap();
    assert!(!holds(&conditions, "Ready") && holds(&conditions, "RuntimeClassesReady"));
    let ready = &conditions[0];
    assert_eq!(
        (&*ready.reason, ready.message.contains("patch Node n")),
        ("ApiError", true),
        "{}",
        ready.message
    );
    assert!(server.sent().iter().any(|w| w.starts_with("POST /apis/node.k8s.io")));
}

#[tokio::test]
async fn a_pool_is_not_let_go_before_everything_is_taken_back() {
    let server = Server::default();
    *server.refuse.lock().unwrap() = Some(("/nodes/", 403));
    let mut model = Model::of([pool("p").default_classes()], [node("n", "p")]);
    model.settle();
    model.pools.insert("p".into(), model.pools["p"].clone().deleting());
    pass(&model, &server).await.unwrap_err();
    assert!(!server.sent().contains(&"PATCH /apis/bifold.dev/v1alpha1/windowsnodepools/p".to_owned()));
    *server.refuse.lock().unwrap() = None;
    pass(&model, &server).await.unwrap();
    assert_eq!(server.sent().last().unwrap(), "PATCH /apis/bifold.dev/v1alpha1/windowsnodepools/p");
}

#[tokio::test]
async fn a_conflict_is_tried_again_on_what_is_there_now_and_not_for_ever() {
    let server = Server::default();
    *server.refuse.lock().unwrap() = Some(("/nodes/", 409));
    let model = Model::of([pool("p")], [node("n", "p")]);
    assert!(pass(&model, &server).await.is_err());
}

#[tokio::test]
async fn a_server_that_is_away_is_an_error_with_a_back_off_that_grows() {
    let server = Server::default();
    server.away.store(true, Ordering::SeqCst);
    let model = Model::of([pool("p")], [node("n", "p")]);
    let error = pass(&model, &server).await.unwrap_err();
    let context = context(&model, &server);
    let wait = || error_policy(Arc::new(pool("p")), &error, context.clone());
    let waits: Vec<Action> = (0..8).map(|_| wait()).collect();
    let expected = [1, 2, 4, 8, 16, 32, 60, 60].map(|s| Action::requeue(Duration::from_secs(s)));
    assert_eq!(waits, expected);
}
