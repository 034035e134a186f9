//! The nodes of a cluster, each kind in a file of its own.
//!
//! | kind | what it is | what runs a pod there |
//! |---|---|---|
//! | [`linux`] | a real kubelet, containerd and kube-proxy in namespaces of their own | runc |
//! | [`simulated`] | a Node object that kwok keeps alive | nothing: pods are reported as running |
//!
//! A real Windows kubelet would be a third file here. It needs what `linux` shows: a holder process with a network
//! namespace, a cable from [`super::network::plug_in`] (addresses from 11 up are kept free for it), an identity from
//! [`super::pki`], and parts started inside the holder by the supervisor.

pub(crate) mod linux;
pub mod simulated;
