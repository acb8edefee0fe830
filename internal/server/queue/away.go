package queue

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrAway says that the queue does not answer. What was asked may be asked again.
var ErrAway = errors.New("the job queue does not answer: try again in a moment")

const (
	// patience is how long an operation is tried while a cluster elects a leader or a node restarts.
	patience = 10 * time.Second
	// startPatience is the same at the start, when the nodes may start too.
	startPatience = 30 * time.Second
	// oneTry is how long one try may take: a node that was killed answers nothing.
	oneTry = 3 * time.Second
)

// again calls a function that may be repeated, until the cluster answers.
func again(ctx context.Context, patience time.Duration, f func(ctx context.Context) error) error {
	end, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		try, stop := context.WithTimeout(end, oneTry)
		err := f(try)
		stop()
		if !gone(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait(end, pause)
		if end.Err() != nil {
			return fmt.Errorf("%w (%w)", ErrAway, err)
		}
	}
}

// wait waits, unless the context ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// absences are errors of a cluster whose nodes restart.
var absences = []error{
	nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrStaleConnection, nats.ErrReconnectBufExceeded,
	jetstream.ErrNoStreamResponse, context.DeadlineExceeded,
}

// gone reports whether an error says that the cluster has no leader now, or is not reachable.
func gone(err error) bool {
	if e, ok := errors.AsType[*jetstream.APIError](err); ok {
		return e.Code >= http.StatusInternalServerError && e.ErrorCode != noCluster
	}
	return slices.ContainsFunc(absences, func(e error) bool { return errors.Is(err, e) })
}

// noCluster is the error code of a NATS that is one node, when it shall keep several replicas.
const noCluster jetstream.ErrorCode = 10074

// replicate calls a function with the number of replicas that the NATS can keep: 3 in a cluster.
func (q *Queue) replicate(ctx context.Context, f func(ctx context.Context) error) error {
	for {
		err := again(ctx, startPatience, f)
		e, ok := errors.AsType[*jetstream.APIError](err)
		if ok && e.ErrorCode == noCluster && q.replicas > 1 {
			q.replicas = 1
			continue
		}
		return err
	}
}
