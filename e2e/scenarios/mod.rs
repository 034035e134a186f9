//! Every story that is told: one file each, in the order in which they run. How they are written is described in
//! [`bifold_e2e::story`].

mod win_webserver;

use bifold_e2e::story::Story;

pub(crate) const ALL: &[Story] = &[win_webserver::STORY];
