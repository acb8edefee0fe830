package worker

import (
	"bufio"
	"context"
	"errors"
	"io"
	"runtime"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/lines"
	"github.com/opmeter/opmeter/internal/measure/ab"
)

// Protocol is the version of the messages: lines of JSON on standard input and output.
const Protocol = 1

// mostLine bounds a message in bytes.
const mostLine = 1 << 20

// request is what the parent asks for.
type request struct {
	Warm bool `json:"warm,omitzero"`
	// BlockS is the duration of a block in seconds.
	BlockS float64 `json:"block_s,omitzero"`
}

// answer is what a worker says: once when the model is loaded, and to each request.
type answer struct {
	// Protocol is set in the first answer, with the shapes of the model's inputs.
	Protocol int       `json:"protocol,omitzero"`
	Inputs   []string  `json:"inputs,omitzero"`
	Block    *ab.Block `json:"block,omitzero"`
	// Error is the end; Status is the exit status that fits it.
	Error  string `json:"error,omitzero"`
	Status int    `json:"status,omitzero"`
}

// Serve answers requests with a timer until in ends. It says first that the timer is ready.
func Serve(ctx context.Context, in io.Reader, out io.Writer, t Timer) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	first := answer{Protocol: Protocol}
	if s, ok := t.(interface{ Inputs() []string }); ok {
		first.Inputs = s.Inputs()
	}
	if err := send(out, first); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	came, ended := requests(ctx, in, cancel)
	for r := range came {
		var a answer
		var err error
		if r.Warm {
			err = t.Warm(ctx)
		} else {
			var b ab.Block
			b, err = t.Block(ctx, time.Duration(r.BlockS*1e9))
			a.Block = &b
		}
		if ctx.Err() != nil {
			break // nobody waits for the answer
		}
		if err != nil {
			return err
		}
		if err := send(out, a); err != nil {
			return err
		}
	}
	return ended()
}

// Refuse tells the parent why there is no timer, with the exit status that fits.
func Refuse(out io.Writer, err error, status int) error {
	return send(out, answer{Error: err.Error(), Status: status})
}

// requests reads requests until in ends, and then cancels: the parent is gone.
func requests(ctx context.Context, in io.Reader, cancel func()) (came <-chan request, ended func() error) {
	list, fault := make(chan request), make(chan error, 1)
	go func() {
		defer close(list)
		defer cancel()
		r := bufio.NewReader(in)
		for {
			var next request
			b, err := lines.Read(r, mostLine)
			if err == nil {
				err = jsonx.UnmarshalStrict(b, &next)
			}
			if err != nil {
				fault <- err
				return
			}
			select {
			case list <- next:
			case <-ctx.Done():
				fault <- ctx.Err()
				return
			}
		}
	}()
	return list, func() error {
		if err := <-fault; err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
}

func send(w io.Writer, a answer) error {
	b, err := jsonx.Marshal(a)
	if err == nil {
		_, err = w.Write(append(b, '\n'))
	}
	return err
}
