// Package server serves the API over a store and an assembly engine. It checks limits, sets ids, times
// and token counts of new events, and converts messages. It has no rules of the log or of reduction.
package server
