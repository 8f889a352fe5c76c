// Package pull is for runtimes that write summaries with a model of their own: requests wait until a worker leases
// them and returns a text.
package pull
