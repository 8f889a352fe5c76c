// The Model Context Protocol (its Go SDK).
package main

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func init() {
	server := mcp.NewServer(&mcp.Implementation{}, nil)
	server.AddTool(&mcp.Tool{}, nil)
	fmt.Println(server.Run(context.Background(), &mcp.StdioTransport{}), mcp.NewStreamableHTTPHandler(nil, nil))
}
