// Package server serves the API over a store and an assembly engine: it checks
// limits, fills in what the edge must fill in (ids, times, token counts) and
// converts. It holds no rule of the log or of reduction.
package server
