package main

import (
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// frame is a message as its bytes.
type frame []byte

// raw passes messages on without reading them.
type raw struct{}

var _ encoding.CodecV2 = raw{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("%T is no frame", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*f)}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("%T is no frame", v)
	}
	*f = data.Materialize()
	return nil
}

// proxy passes calls on to a daemon.
type proxy struct {
	// daemon is the connection of calls that begin now.
	daemon func() *grpc.ClientConn
	// enter is asked before a call is passed on. The error is what the client is answered.
	enter func(method string) error
	// leave is asked before an answer is passed back, by how many went before it in the call.
	leave func(method string, n int) error
}

func (p proxy) server() *grpc.Server {
	return grpc.NewServer(
		grpc.ForceServerCodecV2(raw{}),
		grpc.MaxRecvMsgSize(math.MaxInt32),
		grpc.UnknownServiceHandler(func(_ any, in grpc.ServerStream) error {
			method, ok := grpc.MethodFromServerStream(in)
			if !ok {
				return status.Error(codes.Internal, "no method")
			}
			if err := p.enter(method); err != nil {
				return err
			}
			return p.pass(in, method)
		}))
}

// pass sends one request on and its answers back: no call of the examples sends more.
func (p proxy) pass(in grpc.ServerStream, method string) error {
	out, err := p.daemon().NewStream(in.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method,
		grpc.ForceCodecV2(raw{}), grpc.MaxCallRecvMsgSize(math.MaxInt32))
	if err != nil {
		return err
	}
	var f frame
	if err := in.RecvMsg(&f); err != nil {
		return err
	}
	// Where the daemon has ended the call already, RecvMsg says why.
	if err := out.SendMsg(&f); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := out.CloseSend(); err != nil {
		return err
	}
	for n := 0; ; n++ {
		err := out.RecvMsg(&f)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = p.leave(method, n)
		}
		if err != nil {
			return err
		}
		if err := in.SendMsg(&f); err != nil {
			return err
		}
	}
}
