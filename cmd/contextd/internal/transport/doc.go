// Package transport sits between gRPC and the services: the codec, the chain of
// interceptors and the server's options.
package transport
