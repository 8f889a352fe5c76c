// gRPC and Protocol Buffers, with contextd's own services.
package main

import (
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/protobuf/encoding/protojson"

	adminv1 "github.com/contextd/contextd/proto/contextd/admin/v1"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func init() {
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(nil)))
	reflection.Register(server)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	contextdv1.RegisterContextServiceServer(server, nil)
	contextdv1.RegisterCompactionServiceServer(server, nil)
	adminv1.RegisterAdminServiceServer(server, nil)
	listener, _ := net.Listen("tcp", "")
	server.Serve(listener)
	conn, _ := grpc.NewClient("")
	fmt.Println(contextdv1.NewContextServiceClient(conn), protojson.Format(&contextdv1.Event{}))
}
