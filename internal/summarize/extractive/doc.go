// Package extractive summarises a span without a model: it picks lines out of it, as
// they are there, each under the pointer of the block that it comes from. An agent
// that goes on with them has the exact names and the lines they were in.
package extractive
