//! The stylesheet, the script and the icon, embedded, with a hash in their names so that browsers may keep them.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};

use super::state::Console;

/// A year: another content has another name.
const FOREVER: &str = "public, max-age=31536000, immutable";

struct Asset {
    path: String,
    content_type: &'static str,
    bytes: &'static [u8],
}

impl Asset {
    fn new(stem: &str, extension: &str, content_type: &'static str, bytes: &'static [u8]) -> Asset {
        let hash = Sha256::digest(bytes);
        let hash: String = hash[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        Asset {
            path: format!("/assets/{stem}.{hash}.{extension}"),
            content_type,
            bytes,
        }
    }
}

static ASSETS: LazyLock<[Asset; 3]> = LazyLock::new(|| {
    [
        Asset::new(
            "console",
            "css",
            "text/css; charset=utf-8",
            include_bytes!("assets/console.css"),
        ),
        Asset::new(
            "console",
            "js",
            "text/javascript; charset=utf-8",
            include_bytes!("assets/console.js"),
        ),
        Asset::new(
            "icon",
            "svg",
            "image/svg+xml",
            include_bytes!("assets/icon.svg"),
        ),
    ]
});

/// The paths of the assets, for the pages.
#[derive(Clone, Copy)]
pub struct AssetPaths {
    pub stylesheet: &'static str,
    pub script: &'static str,
    pub icon: &'static str,
}

pub fn paths() -> AssetPaths {
    let [stylesheet, script, icon] = &*ASSETS;
    AssetPaths {
        stylesheet: &stylesheet.path,
        script: &script.path,
        icon: &icon.path,
    }
}

pub fn routes() -> Router<Arc<Console>> {
    Router::new().route("/assets/{name}", get(serve))
}

async fn serve(Path(name): Path<String>) -> Response {
    let path = format!("/assets/{name}");
    match ASSETS.iter().find(|asset| asset.path == path) {
        Some(asset) => (
            [
                (header::CONTENT_TYPE, asset.content_type),
                (header::CACHE_CONTROL, FOREVER),
            ],
            asset.bytes,
        )
            .into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
