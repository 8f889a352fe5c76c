// Package transport has what is between gRPC and the services: listeners, the codec, the chain of
// interceptors and the server's options.
package transport
