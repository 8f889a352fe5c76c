// Profiles, tokens (JWT), Connect for browsers, commands and progress.
package main

import (
	"context"
	"fmt"
	_ "net/http/pprof"

	"connectrpc.com/connect"
	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/fsnotify/fsnotify"
	"github.com/golang-jwt/jwt/v5"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func init() {
	remote, _ := keyfunc.NewDefaultOverrideCtx(context.Background(), nil, keyfunc.Override{})
	local, _ := keyfunc.NewJWKSetJSON(nil)
	bar := progressbar.NewOptions(1)
	bar.Add(1)
	bar.Clear()
	bar.RenderBlank()
	memlimit.Set(memlimit.WithProvider(memlimit.FromCgroup))
	watcher, _ := fsnotify.NewWatcher()
	fmt.Println(
		remote, local, jwt.NewParser(), watcher, (&cobra.Command{}).Execute(),
		logging.UnaryServerInterceptor(nil), recovery.UnaryServerInterceptor(),
		connect.NewUnaryHandler("", func(context.Context, *connect.Request[contextdv1.Event]) (*connect.Response[contextdv1.Event], error) {
			return nil, nil
		}),
	)
}
