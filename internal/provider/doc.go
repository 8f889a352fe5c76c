// Package provider tells from the name of a model, and from what seals a block of
// reasoning, whose rules a message stands under.
package provider
