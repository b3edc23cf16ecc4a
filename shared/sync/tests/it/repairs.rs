//! A repair next to others.

use futures_util::FutureExt;
use layout::{Form, Key};
use store::{
    Condition,
    memory::{Action, Answer, Moment},
};
use sync::Settings;

use crate::kit::{V1, V2, assert_sound, copier, mirror, name, snapshot};

/// The store fails in the very moment in which somebody else has repaired the object.
#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_repaired_is_not_removed() {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[V1]).await;
    let key = Key::All(name(), snapshot(&to).await.content_hash, Form::Gzip);
    let sound = original.objects()[&key].clone();
    memory.corrupt(&key, "damaged");
    let (other, damaged) = (memory.clone(), key.clone());
    memory.set_hook(move |call, moment| {
        let is_repair =
            matches!(call.action, Action::Put(Condition::Replace(_))) && call.key.as_ref() == Some(&damaged);
        if !is_repair || moment == Moment::After {
            return Answer::GoOn;
        }
        other.corrupt(&damaged, sound.clone());
        Answer::Deny
    });
    let repair = copier(&from, &to, Settings::default()).repair(&name()).await.unwrap();
    memory.clear_hook();
    assert_eq!(repair.failed, []);
    assert_eq!(memory.count(|action| *action == Action::Delete), 0);
    assert_sound(&memory).await;
}

/// Only what was found damaged is replaced: a write that lands late hits nothing that was written since.
#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_repaired_is_not_replaced() {
    let (_, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[V1]).await;
    let hash = snapshot(&to).await.content_hash;
    let is_repair = |action: &Action| matches!(action, Action::Put(Condition::Replace(_)));
    for (repairs, key) in (1..).zip([Key::All(name(), hash, Form::Gzip), Key::Snapshot(name(), hash)]) {
        let sound = memory.objects()[&key].clone();
        to.put(&key, "damaged".into(), Condition::Always).await.unwrap();
        let other = to.clone();
        memory.set_hook(move |call, moment| {
            if !is_repair(&call.action) || moment == Moment::After {
                return Answer::GoOn;
            }
            let (other, key, sound) = (other.clone(), call.key.clone().unwrap(), sound.clone());
            let put = async move { other.put(&key, sound, Condition::Always).await.map(drop) };
            Answer::Wait(put.map(|put| put.map_or(Answer::Fail, |()| Answer::GoOn)).boxed())
        });
        let repair = copier(&from, &to, Settings::default()).repair(&name()).await.unwrap();
        memory.clear_hook();
        assert_eq!((repair.failed, memory.count(is_repair)), (vec![], repairs));
        assert_sound(&memory).await;
    }
}

/// A bucket may deny every write to an immutable key that is not create-only.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_replaced_is_removed_first() {
    let (_, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[V1]).await;
    let key = Key::All(name(), snapshot(&to).await.content_hash, Form::Gzip);
    memory.corrupt(&key, "damaged");
    memory.set_hook(|call, _| match call.action {
        Action::Put(Condition::Replace(_)) => Answer::Deny,
        _ => Answer::Wait(async { Answer::GoOn }.boxed()),
    });
    let repair = copier(&from, &to, Settings::default()).repair(&name()).await.unwrap();
    memory.clear_hook();
    assert_eq!((repair.failed, repair.repaired), (vec![], vec![key.to_string()]));
    assert_sound(&memory).await;
}

/// As long as one is damaged, garbage collections stop.
#[tokio::test(flavor = "multi_thread")]
async fn earlier_snapshots_are_repaired_too() {
    let (_, from) = mirror(&[V1, V2]).await;
    let (memory, to) = mirror(&[V1]).await;
    let earlier = Key::Snapshot(name(), snapshot(&to).await.content_hash);
    let copied = copier(&from, &to, Settings::default()).copy(&name()).await;
    assert!(copied.error.is_none(), "{copied:?}");
    let sound = memory.objects()[&earlier].clone();
    // The other one says the same, and is not what was signed or served.
    let other = String::from_utf8(sound.to_vec()).unwrap().replacen("\": ", "\" :", 1);
    for damage in ["no json".to_owned(), other] {
        memory.corrupt(&earlier, damage);
        let repair = copier(&from, &to, Settings::default()).repair(&name()).await.unwrap();
        assert_eq!((repair.failed, repair.repaired), (vec![], vec![earlier.to_string()]));
        assert_eq!(memory.objects()[&earlier], sound);
    }
    assert_sound(&memory).await;
}
