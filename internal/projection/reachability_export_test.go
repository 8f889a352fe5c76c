package projection

// ClearEvery is how many turns a batch of reachability_gc waits at most.
const ClearEvery = defaultClearEvery
