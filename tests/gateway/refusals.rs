//! Requests that go nowhere.
