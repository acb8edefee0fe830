// Command opmeter-mcp answers AI agents by the Model Context Protocol, for opmeter mcp, which
// starts it. It is not for people: all messages pass over standard input and output.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/mcp"
)

func main() {
	var o mcp.Options
	flag.StringVar(&o.Program, "opmeter", "", "file of opmeter")
	flag.Func("allow", "folder that tools may read", func(dir string) error { o.Allow = append(o.Allow, dir); return nil })
	flag.StringVar(&o.Write, "write", "", "folder that tools may write to")
	flag.DurationVar(&o.Limit, "limit", 0, "time limit of a call")
	flag.Parse()
	if o.Program == "" {
		fmt.Printf("opmeter-mcp %s: opmeter mcp starts it, there is nothing to do with it by hand.\n", buildinfo.Version())
		return
	}
	subprocess.Sweep()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := mcp.Serve(ctx, os.Stdin, os.Stdout, o)
	interrupted := ctx.Err() != nil
	stop()
	subprocess.EndAll()
	if err != nil && !interrupted {
		fmt.Fprintln(os.Stderr, "opmeter-mcp:", err)
		os.Exit(1)
	}
}
