package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// lines reads messages, one a line. It answers a line that is no message with an error and skips
// it: the protocol's library would end the session, and with it all profiles.
type lines struct {
	io.Closer
	in   *bufio.Reader
	out  io.Writer
	rest []byte // of the message that is read
	end  error  // of the input
}

func newLines(in io.ReadCloser, out io.Writer) *lines {
	return &lines{Closer: in, in: bufio.NewReader(in), out: out}
}

// Read returns bytes of one message with its newline.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.end != nil {
			return 0, l.end
		}
		var line []byte
		var size int
		line, size, l.end = l.next()
		if bad := badMessage(line, size); bad != nil {
			if err := l.refuse(bad); err != nil {
				return 0, err
			}
		} else if len(line) > 0 {
			l.rest = append(line, '\n')
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next returns a line without blanks around it, and its size. It keeps no more than maxMessage.
func (l *lines) next() (line []byte, size int, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		if size += len(part); size <= maxMessage {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), size, err
		}
	}
}

// badMessage says what is wrong with a line, nil for a message and for an empty line.
func badMessage(line []byte, size int) *jsonrpc.Error {
	var any json.RawMessage
	switch {
	case size > maxMessage:
		return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: fmt.Sprintf("the line has %d bytes, expected at most %d: send a shorter message", size, maxMessage)}
	case len(line) == 0:
		return nil
	case json.Unmarshal(line, &any) != nil:
		return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the line is no JSON: send one message of JSON-RPC 2.0 a line"}
	case line[0] == '[':
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the line is a batch of messages: send one message a line"}
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: clipTo("the line is no message of JSON-RPC 2.0: "+err.Error(), maxError)}
	}
	return nil
}

// refuse answers a line that is no message. It has no identifier that could be trusted.
func (l *lines) refuse(bad *jsonrpc.Error) error {
	answer := struct {
		Version string         `json:"jsonrpc"`
		ID      *int           `json:"id"`
		Error   *jsonrpc.Error `json:"error"`
	}{"2.0", nil, bad}
	b, err := json.Marshal(answer)
	if err == nil {
		_, err = l.out.Write(append(b, '\n'))
	}
	return err
}

// shared is an output that the protocol's library and lines write to, a line each.
type shared struct {
	io.WriteCloser
	mu sync.Mutex
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.WriteCloser.Write(p)
}
