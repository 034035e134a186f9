//! Every story that is told: one file each, in the order in which they run. How they are written is described in
//! [`bifold_e2e::story`].

mod api_server_away;
mod bad_input;
mod certificate_rotation;
mod daemonset_everywhere;
mod image_only_deployment;
mod kinds;
mod leader_lost;
mod linux_deployment;
mod policy_life;
mod pool_life;
mod readme;
mod replica_lost;
mod second_cluster;
mod secret_volume;
mod upgrade_uninstall;
mod win_webserver;
mod windows_daemonset;

use bifold_e2e::story::Story;

pub(crate) const ALL: &[Story] = &[
    kinds::STORY,
    win_webserver::STORY,
    image_only_deployment::STORY,
    linux_deployment::STORY,
    daemonset_everywhere::STORY,
    windows_daemonset::STORY,
    secret_volume::STORY,
    policy_life::STORY,
    pool_life::STORY,
    bad_input::STORY,
    replica_lost::STORY,
    leader_lost::STORY,
    certificate_rotation::STORY,
    api_server_away::STORY,
    second_cluster::STORY,
    // Last: they install and uninstall Bifold.
    upgrade_uninstall::STORY,
    readme::STORY,
];
