//! The images format as its clients and upstreams see it.
