//! The `images` table.

use std::time::Duration;

use crate::config::settings::{FilesConfig, ImagesConfig, TasksConfig};
use crate::config::table::{ConfigField, ConfigReader, ConfigTable};
use crate::config::values;

const DEFAULT_TASKS: TasksConfig = TasksConfig {
    at_once: 4,
    waiting: 100,
    waiting_per_key: 50,
    ttl: Duration::from_secs(3600),
    max_bytes_per_key: 256 << 20,
};

pub fn default() -> ImagesConfig {
    ImagesConfig {
        tasks: DEFAULT_TASKS,
        persist: false,
        files: FilesConfig {
            limit: 32 << 20,
            size: 256 << 20,
            ttl: Duration::from_secs(3600),
            timeout: Duration::from_secs(30),
            hosts: Vec::new(),
        },
        public_url: None,
    }
}

pub fn parse(reader: &mut ConfigReader, mut table: ConfigTable) -> ImagesConfig {
    let default = self::default();
    let tasks = table.take("tasks");
    let tasks = tasks.and_then(|field| parse_tasks(reader, field));
    let persist = reader.optional(&mut table, "persist", values::switch);
    let files = table.take("files");
    let files = files.and_then(|field| parse_files(reader, field, &default.files));
    let public_url = reader.optional(&mut table, "public_url", values::document_url);
    reader.finish(table);
    ImagesConfig {
        tasks: tasks.unwrap_or(default.tasks),
        persist: persist.unwrap_or(default.persist),
        files: files.unwrap_or(default.files),
        public_url,
    }
}

fn parse_tasks(reader: &mut ConfigReader, field: ConfigField) -> Option<TasksConfig> {
    let mut table = reader.table("tasks", field)?;
    let at_once = reader.optional(&mut table, "at_once", values::count);
    let waiting = reader.optional(&mut table, "waiting", values::count);
    let waiting = waiting.unwrap_or(DEFAULT_TASKS.waiting);
    let waiting_per_key = reader.optional(&mut table, "waiting_per_key", values::count);
    let ttl = reader.optional(&mut table, "ttl", values::duration);
    let max_bytes_per_key = reader.optional(&mut table, "max_bytes_per_key", values::size);
    reader.finish(table);
    Some(TasksConfig {
        at_once: at_once.unwrap_or(DEFAULT_TASKS.at_once),
        waiting,
        waiting_per_key: waiting_per_key.unwrap_or(waiting.div_ceil(2)),
        ttl: ttl.unwrap_or(DEFAULT_TASKS.ttl),
        max_bytes_per_key: max_bytes_per_key.unwrap_or(DEFAULT_TASKS.max_bytes_per_key),
    })
}

fn parse_files(
    reader: &mut ConfigReader,
    field: ConfigField,
    default: &FilesConfig,
) -> Option<FilesConfig> {
    let mut table = reader.table("files", field)?;
    let limit = reader.optional(&mut table, "limit", values::size);
    let size = reader.optional(&mut table, "size", values::size);
    let ttl = reader.optional(&mut table, "ttl", values::duration);
    let timeout = reader.optional(&mut table, "timeout", values::duration);
    let hosts = table.take("hosts").map(|field| {
        let hosts = reader.filled_list(field).into_iter();
        let hosts = hosts.filter_map(|host| reader.value(host, values::label));
        hosts.map(|host| host.value).collect()
    });
    reader.finish(table);
    Some(FilesConfig {
        limit: limit.unwrap_or(default.limit),
        size: size.unwrap_or(default.size),
        ttl: ttl.unwrap_or(default.ttl),
        timeout: timeout.unwrap_or(default.timeout),
        hosts: hosts.unwrap_or_default(),
    })
}
