// Package pull lets a runtime write summaries with a model of its own: requests wait
// until a worker takes them on a lease and brings back a text.
package pull
