// Package reachability measures on recorded sessions how much the projection policy reachability_gc reclaims,
// and checks that it never drops what it must keep.
package reachability
