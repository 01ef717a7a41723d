//! Inspections: for a short time, what the requests of a key were and became is kept in the memory of this process.

mod capture;
mod memory;

pub use capture::{
    Capture, CaptureOutcome, CapturedAttempt, CapturedMessage, CapturedRequest, EventKind,
    EventSide, PANE_LIMIT, TimelineEvent,
};
pub use memory::CaptureShare;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;

use memory::CaptureMemory;

/// How long a key is inspected.
pub const INSPECTION_TIME: Duration = Duration::from_secs(15 * 60);
/// How many requests of it are.
pub const INSPECTED_REQUESTS: u32 = 20;
/// How long what was captured can be seen, counted from the start.
pub const CAPTURES_KEPT: Duration = Duration::from_secs(60 * 60);

/// How many bytes all captures of a process have at most.
const MEMORY_LIMIT: usize = 64 << 20;

/// How many inspections of the keys of one account can be seen.
const KEPT_INSPECTIONS: usize = 10;

/// How many of the requests that the console itself has made can be seen, of each person.
const KEPT_PLAYS: usize = 5;

/// Tells the requests of a key whether they are inspected. Outlives reloads.
#[derive(Debug, Default)]
pub struct InspectionSwitch {
    /// What a request looks at: most keys are never inspected.
    is_on: AtomicBool,
    inspection: Mutex<Option<Arc<Inspection>>>,
}

impl InspectionSwitch {
    /// Begins the capture of a request, if its key is inspected.
    pub fn begin(&self, request_id: &str) -> Option<Arc<Capture>> {
        match self.is_on.load(Ordering::Relaxed) {
            false => None,
            true => self.begin_capture(request_id),
        }
    }

    #[cold]
    fn begin_capture(&self, request_id: &str) -> Option<Arc<Capture>> {
        let inspection = self.inspection()?;
        let capture = inspection.begin(request_id);
        if !inspection.is_running() {
            self.turn_off(&inspection);
        }
        capture
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    fn inspection(&self) -> Option<Arc<Inspection>> {
        self.lock().clone()
    }

    fn turn_on(&self, inspection: Arc<Inspection>) {
        let mut running = self.lock();
        *running = Some(inspection);
        self.is_on.store(true, Ordering::Release);
    }

    /// Turns it off, unless another inspection has begun meanwhile.
    fn turn_off(&self, ended: &Arc<Inspection>) {
        let mut inspection = self.lock();
        if inspection.as_ref().is_some_and(|it| Arc::ptr_eq(it, ended)) {
            *inspection = None;
            self.is_on.store(false, Ordering::Release);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Inspection>>> {
        let inspection = self.inspection.lock();
        inspection.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose requests are inspected, and who wants to see them.
#[derive(Debug, Clone)]
pub struct InspectedKey {
    pub id: String,
    pub name: String,
    /// The account that the key belongs to.
    pub account: String,
    /// The handle of who has started it.
    pub by: String,
}

/// What is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InspectionScope {
    /// The next requests of the key, whoever makes them.
    Key,
    /// The one request that a person makes in the console.
    Play,
}

/// One inspection of one key.
#[derive(Debug)]
pub struct Inspection {
    pub id: String,
    pub key: InspectedKey,
    pub scope: InspectionScope,
    pub started: Timestamp,
    began: Instant,
    switch: Arc<InspectionSwitch>,
    memory: Arc<CaptureMemory>,
    progress: Mutex<InspectionProgress>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct InspectionProgress {
    is_ended: bool,
    captures: Vec<Arc<Capture>>,
}

impl Inspection {
    /// When no further request is inspected.
    pub fn until(&self) -> Timestamp {
        self.started + INSPECTION_TIME
    }

    /// When what was captured is forgotten.
    pub fn kept_until(&self) -> Timestamp {
        self.started + CAPTURES_KEPT
    }

    /// How many more requests are inspected.
    pub fn left(&self) -> u32 {
        let progress = self.progress();
        match self.is_over(&progress) {
            true => 0,
            false => self.most() - progress.captures.len() as u32,
        }
    }

    pub fn is_running(&self) -> bool {
        !self.is_over(&self.progress())
    }

    pub fn captures(&self) -> Vec<Arc<Capture>> {
        self.progress().captures.clone()
    }

    /// The capture with this number.
    pub fn capture(&self, number: u32) -> Option<Arc<Capture>> {
        let at = usize::try_from(number.checked_sub(1)?).ok()?;
        self.progress().captures.get(at).cloned()
    }

    /// Changes whenever more is known.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn begin(&self, request_id: &str) -> Option<Arc<Capture>> {
        let mut progress = self.progress();
        if self.is_over(&progress) {
            return None;
        }
        let number = progress.captures.len() as u32 + 1;
        let (memory, changes) = (self.memory.clone(), self.changes.clone());
        let capture = Arc::new(Capture::new(number, request_id, memory, changes));
        progress.captures.push(capture.clone());
        Some(capture)
    }

    fn is_over(&self, progress: &InspectionProgress) -> bool {
        progress.is_ended
            || progress.captures.len() >= self.most() as usize
            || self.began.elapsed() >= INSPECTION_TIME
    }

    /// How many requests are captured.
    const fn most(&self) -> u32 {
        match self.scope {
            InspectionScope::Key => INSPECTED_REQUESTS,
            InspectionScope::Play => 1,
        }
    }

    /// Whether it has any of the memory of captures.
    fn holds_memory(&self) -> bool {
        let progress = self.progress();
        progress.captures.iter().any(|capture| capture.bytes() > 0)
    }

    /// Nothing of it changes any more.
    fn has_ended(&self) -> bool {
        let progress = self.progress();
        self.is_over(&progress) && progress.captures.iter().all(|capture| capture.has_ended())
    }

    fn end(self: &Arc<Inspection>) {
        self.progress().is_ended = true;
        self.switch.turn_off(self);
        self.changes.send_modify(|count| *count += 1);
    }

    fn progress(&self) -> MutexGuard<'_, InspectionProgress> {
        let progress = self.progress.lock();
        progress.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The inspections of this process.
#[derive(Debug)]
pub struct Inspector {
    inspections: Mutex<Vec<Arc<Inspection>>>,
    memory: Arc<CaptureMemory>,
    /// The part of each account, for as long as a capture has it: that may be one of a forgotten inspection.
    by_account: Mutex<HashMap<String, Weak<CaptureMemory>>>,
}

impl Default for Inspector {
    fn default() -> Inspector {
        Inspector {
            inspections: Mutex::default(),
            memory: Arc::new(CaptureMemory::new(MEMORY_LIMIT)),
            by_account: Mutex::default(),
        }
    }
}

impl Inspector {
    /// Starts an inspection, in the place of the last one of the same key, or of the oldest of its account.
    pub fn start(&self, key: InspectedKey, switch: Arc<InspectionSwitch>) -> Arc<Inspection> {
        let mut inspections = self.current();
        let of_keys = |other: &Inspection| other.scope == InspectionScope::Key;
        keep_last(&mut inspections, 1, |other| {
            of_keys(other) && other.key.id == key.id
        });
        keep_last(&mut inspections, KEPT_INSPECTIONS, |other| {
            of_keys(other) && other.key.account == key.account
        });
        self.begin(&mut inspections, InspectionScope::Key, key, switch)
    }

    /// Captures the next request by a switch of its own, in the place of the oldest of the same person.
    pub fn start_play(&self, key: InspectedKey, switch: Arc<InspectionSwitch>) -> Arc<Inspection> {
        let mut inspections = self.current();
        keep_last(&mut inspections, KEPT_PLAYS, |other| {
            other.scope == InspectionScope::Play && other.key.by == key.by
        });
        self.begin(&mut inspections, InspectionScope::Play, key, switch)
    }

    fn begin(
        &self,
        inspections: &mut Vec<Arc<Inspection>>,
        scope: InspectionScope,
        key: InspectedKey,
        switch: Arc<InspectionSwitch>,
    ) -> Arc<Inspection> {
        self.make_room(inspections);
        let inspection = Arc::new(Inspection {
            id: uuid::Uuid::new_v4().simple().to_string(),
            started: Timestamp::now(),
            began: Instant::now(),
            switch: switch.clone(),
            memory: self.memory_of(&key.account),
            progress: Mutex::default(),
            changes: watch::Sender::default(),
            scope,
            key,
        });
        switch.turn_on(inspection.clone());
        inspections.push(inspection.clone());
        inspection
    }

    /// The part of the memory that an account has: the same for as long as anything is left in it.
    fn memory_of(&self, account: &str) -> Arc<CaptureMemory> {
        let by_account = self.by_account.lock();
        let mut by_account = by_account.unwrap_or_else(PoisonError::into_inner);
        by_account.retain(|_, memory| memory.strong_count() > 0);
        if let Some(memory) = by_account.get(account).and_then(Weak::upgrade) {
            return memory;
        }
        let memory = Arc::new(self.memory.of_account());
        by_account.insert(account.to_owned(), Arc::downgrade(&memory));
        memory
    }

    /// Forgets inspections that are over, the oldest of the account that has most memory first, until another account can have
    /// its part, or until nothing comes of it: somebody may be looking at the captures.
    fn make_room(&self, inspections: &mut Vec<Arc<Inspection>>) {
        while self.memory.is_scarce() {
            let all = inspections.iter().enumerate();
            let over = all.filter(|(_, other)| other.has_ended() && other.holds_memory());
            let Some((at, _)) = over.max_by_key(|(at, other)| (other.memory.used(), Reverse(*at)))
            else {
                return;
            };
            let before = self.memory.used();
            inspections.remove(at).end();
            if self.memory.used() >= before {
                return;
            }
        }
    }

    /// Ends the inspection of a key before its time; `None`: none is running.
    pub fn end(&self, key_id: &str) -> Option<Arc<Inspection>> {
        let running = self.of_key(key_id).filter(|it| it.is_running())?;
        running.end();
        Some(running)
    }

    pub fn find(&self, id: &str) -> Option<Arc<Inspection>> {
        let inspections = self.current();
        inspections.iter().find(|it| it.id == id).cloned()
    }

    /// The last inspection of a key.
    pub fn of_key(&self, key_id: &str) -> Option<Arc<Inspection>> {
        let inspections = self.current();
        let mut inspections = inspections.iter();
        let found = inspections.find(|it| it.scope == InspectionScope::Key && it.key.id == key_id);
        found.cloned()
    }

    /// Forgets what has been kept for long enough.
    pub fn forget_old(&self) {
        drop(self.current());
    }

    /// The inspections that are not forgotten.
    fn current(&self) -> MutexGuard<'_, Vec<Arc<Inspection>>> {
        let inspections = self.inspections.lock();
        let mut inspections = inspections.unwrap_or_else(PoisonError::into_inner);
        inspections.retain(|inspection| {
            if !inspection.is_running() {
                inspection.switch.turn_off(inspection);
            }
            inspection.began.elapsed() < CAPTURES_KEPT
        });
        inspections
    }
}

/// Makes room for one more of these inspections, by ending and forgetting the oldest.
fn keep_last(
    inspections: &mut Vec<Arc<Inspection>>,
    most: usize,
    is_meant: impl Fn(&Inspection) -> bool,
) {
    let count = inspections.iter().filter(|other| is_meant(other)).count();
    let mut surplus = (count + 1).saturating_sub(most);
    inspections.retain(|other| {
        let is_kept = surplus == 0 || !is_meant(other);
        if !is_kept {
            surplus -= 1;
            other.end();
        }
        is_kept
    });
}

#[cfg(test)]
mod tests;
