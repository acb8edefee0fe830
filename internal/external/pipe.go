package external

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/measure/loadfigures"
	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/profile"
)

// Request is the first message to the child: which library to open, and what to measure.
type Request struct {
	// Protocol is [Protocol]: a child of another release is detected at once.
	Protocol int `json:"protocol"`
	// Engine is the engine's name, Library the file to open.
	Engine  string `json:"engine"`
	Library string `json:"library"`
	// Task is the model, nil if only [About] is requested. Its inputs follow the message.
	Task *Task `json:"task,omitzero"`
	// Runs, Time, WarmupTime and WarmupRuns are as in internal/measure/loop, times in
	// nanoseconds.
	Runs       int   `json:"runs,omitzero"`
	Time       int64 `json:"time_ns,omitzero"`
	WarmupTime int64 `json:"warmup_time_ns,omitzero"`
	WarmupRuns int   `json:"warmup_runs,omitzero"`
	// Samples keeps every sample and a timeline. Events keeps a sample of the timeline with so
	// many bars, but one inference at least; 0 for none.
	Samples bool `json:"samples,omitzero"`
	Events  int  `json:"events,omitzero"`
	// Interleaved says that measurements are interleaved: the child waits for its turns.
	Interleaved bool `json:"interleaved,omitzero"`
	// CPUs are the processors that the child and its threads are bound to, nil for any.
	CPUs []int `json:"cpus,omitzero"`
	// Load configures the measurement under load, besides sequential inferences. Alone measures
	// only the streams, once, for a [Message].Round.
	Load  loadfigures.Load `json:"load,omitzero"`
	Alone bool             `json:"alone,omitzero"`
	// Blocks answers blocks of inferences instead: the child loads the model, sends
	// [Message].Turn, and answers each [Message].Go with a [Message].Block.
	Blocks bool `json:"blocks,omitzero"`
	// Pin binds threads. StreamCPUs are the processors of the streams, Task.Threads for each; nil
	// if there are not enough.
	Pin        bool  `json:"pin,omitzero"`
	StreamCPUs []int `json:"stream_cpus,omitzero"`
	// Ceilings are the kinds of internal/measure/peakmodels that measure the engine's peak rates.
	Ceilings []string `json:"ceilings,omitzero"`
	// MaxMemory limits the data of the process, in bytes, 0 for no limit.
	MaxMemory int64 `json:"max_memory,omitzero"`
}

// Protocol is the version of this protocol. It changes when messages change.
const Protocol = 4

// Message is a message between parent and child. One part is set.
type Message struct {
	// From the parent: the request, the start of the child's turn, the request to stop.
	Request *Request `json:"request,omitzero"`
	Go      bool     `json:"go,omitzero"`
	// with Go, the duration of a block; 0 for a warm-up
	BlockNS int64 `json:"block_ns,omitzero"`
	Stop    bool  `json:"stop,omitzero"`

	// From the child, in about this order.
	About    *About    `json:"about,omitzero"`    // description of the opened library
	Progress *Progress `json:"progress,omitzero"` // the current phase
	// the turn ended, or the child waits for its first one
	Turn  bool           `json:"turn,omitzero"`
	Event *profile.Event `json:"event,omitzero"` // an event for the sink
	// accompany the event that describes the profile
	Hints []join.Hint `json:"hints,omitzero"`
	Facts *Facts      `json:"facts,omitzero"` // settings in effect
	// outputs of the first run; tensors follow
	Outputs bool `json:"outputs,omitzero"`
	// result of the streams, if only they were requested
	Round *loadfigures.Round `json:"round,omitzero"`
	// a block of inferences, empty after the warm-up
	Block *ab.Block `json:"block,omitzero"`
	// all requested results were sent: a failure from now on loses nothing
	Spare bool   `json:"spare,omitzero"`
	Error *Error `json:"error,omitzero"` // the end, with an error
	Done  bool   `json:"done,omitzero"`  // the end

	// Heads describe the tensors that follow a message.
	Heads []head `json:"tensors,omitzero"`
	// Tensors are the tensors that follow the message.
	Tensors []Tensor `json:"-"`
}

// Progress is the current phase and its completed fraction, from 0 to 1.
type Progress struct {
	Phase    string  `json:"phase"`
	Fraction float64 `json:"fraction,omitzero"`
}

// head describes a tensor whose elements follow.
type head struct {
	Name    string   `json:"name,omitzero"`
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Bytes   int64    `json:"bytes,omitzero"`
	Strings []string `json:"strings,omitzero"`
}

// Limits on what is read from the other side.
const (
	maxMessage = 256 << 20 // bytes of the text of a message
	maxTensors = 1 << 16
)

// Pipe carries messages. Each consists of its length (8 bytes, little-endian), its JSON, and the
// elements of the tensors that it describes. Several goroutines may send; one may receive.
type Pipe struct {
	r  *bufio.Reader
	mu sync.Mutex
	w  io.Writer
}

// NewPipe returns a pipe over the two directions.
func NewPipe(r io.Reader, w io.Writer) *Pipe { return &Pipe{r: bufio.NewReaderSize(r, 1<<16), w: w} }

// Send sends a message with its tensors.
func (p *Pipe) Send(m *Message) error {
	m.Heads = nil
	for _, t := range m.Tensors {
		m.Heads = append(m.Heads, head{Name: t.Name, DType: t.DType, Shape: t.Shape, Bytes: int64(len(t.Data)), Strings: t.Strings})
	}
	text, err := jsonx.Marshal(m)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	frame := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(text)), uint64(len(text)))
	if _, err := p.w.Write(append(frame, text...)); err != nil {
		return err
	}
	for _, t := range m.Tensors {
		if _, err := p.w.Write(t.Data); err != nil {
			return err
		}
	}
	return nil
}

// Receive waits for a message. It returns io.EOF once the other side has closed.
func (p *Pipe) Receive() (*Message, error) {
	var size [8]byte
	if _, err := io.ReadFull(p.r, size[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(size[:])
	if n > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes, at most %d are expected", n, maxMessage)
	}
	text, err := p.bytes(int64(n))
	if err != nil {
		return nil, err
	}
	m := &Message{}
	if err := jsonx.Unmarshal(text, m); err != nil {
		// The error may be that of an end of file, which this is not.
		return nil, fmt.Errorf("a message that is none: %v", err) //nolint:errorlint // on purpose
	}
	if len(m.Heads) > maxTensors {
		return nil, fmt.Errorf("%d tensors in a message, at most %d are expected", len(m.Heads), maxTensors)
	}
	for _, h := range m.Heads {
		if h.Bytes < 0 {
			return nil, fmt.Errorf("a tensor of %d bytes", h.Bytes)
		}
		data, err := p.bytes(h.Bytes)
		if err != nil {
			return nil, err
		}
		m.Tensors = append(m.Tensors, Tensor{Name: h.Name, DType: h.DType, Shape: h.Shape, Data: data, Strings: h.Strings})
	}
	return m, nil
}

// bytes reads n bytes. Memory grows with the data received, not with the announced size.
func (p *Pipe) bytes(n int64) ([]byte, error) {
	var b bytes.Buffer
	if n <= 1<<20 {
		b.Grow(int(n))
	}
	if _, err := io.CopyN(&b, p.r, n); err != nil {
		if err == io.EOF { //nolint:errorlint // io.CopyN returns it bare
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return b.Bytes(), nil
}
