package transport

import (
	"time"

	"google.golang.org/grpc"
)

// Server is a gRPC server whose calls all go through one chain of interceptors, unary calls too. gRPC
// would receive the whole request of a unary call before it runs an interceptor. Here unary methods are
// served as streams, which receive each message within bounds.
type Server struct {
	*grpc.Server
	chain []grpc.StreamServerInterceptor
	calls *bounds
}

// NewServer returns a server without services.
func NewServer(o Options) (*Server, error) {
	opts, chain, calls, err := o.build()
	if err != nil {
		return nil, err
	}
	return &Server{grpc.NewServer(opts...), chain, calls}, nil
}

// Running lists the calls that have not ended, the oldest first.
func (s *Server) Running() []string { return s.calls.names(time.Now()) }

// Calls returns how many calls have not ended, without health checks.
func (s *Server) Calls() int64 {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	return int64(s.calls.calls.running)
}

// RegisterService implements grpc.ServiceRegistrar.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	own := *desc
	own.Methods, own.Streams = nil, nil
	for _, m := range desc.Methods {
		own.Streams = append(own.Streams, s.intercepted(desc.ServiceName, grpc.StreamDesc{StreamName: m.MethodName, Handler: unary(m)}))
	}
	for _, d := range desc.Streams {
		own.Streams = append(own.Streams, s.intercepted(desc.ServiceName, d))
	}
	s.Server.RegisterService(&own, impl)
}

// unary serves a unary method as a stream of one message each way.
func unary(m grpc.MethodDesc) grpc.StreamHandler {
	return func(srv any, ss grpc.ServerStream) error {
		answer, err := m.Handler(srv, ss.Context(), ss.RecvMsg, nil)
		if err != nil {
			return err
		}
		return ss.SendMsg(answer)
	}
}

// intercepted returns a method that runs the chain first.
func (s *Server) intercepted(service string, d grpc.StreamDesc) grpc.StreamDesc {
	info := &grpc.StreamServerInfo{
		FullMethod: "/" + service + "/" + d.StreamName, IsClientStream: d.ClientStreams, IsServerStream: d.ServerStreams,
	}
	handler := d.Handler
	for i := len(s.chain) - 1; i >= 0; i-- {
		next, interceptor := handler, s.chain[i]
		handler = func(srv any, ss grpc.ServerStream) error { return interceptor(srv, ss, info, next) }
	}
	d.Handler = handler
	return d
}
