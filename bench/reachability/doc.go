// Package reachability measures on recorded sessions what the projection policy
// reachability_gc reclaims, and checks what it must never do.
package reachability
