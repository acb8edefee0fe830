package agent

import (
	"bytes"
	"hash/crc32"
	"unicode/utf8"
)

// Sizes of the format in bytes.
const (
	minFrame  = 1 + headBytes + 4 // in COBS, without delimiters
	maxFrame  = 253               // the agent's longest, without delimiters
	headBytes = 3                 // type and sequence number
	maxText   = 1 << 10           // of text or noise that is held until it is told of
)

// Frame is a frame with a valid checksum.
type Frame struct {
	Type Type
	// Sequence counts all frames since the device started, and wraps around.
	Sequence uint16
	// Body is valid until the next call of [Decoder.Feed].
	Body []byte
	// Check is the frame's CRC-32.
	Check uint32
}

// Piece is an element of a stream. One of its parts is set.
type Piece struct {
	Frame *Frame
	// Text is output of the firmware between frames. It may be part of a line.
	Text []byte
	// Noise is the number of bytes that are neither frame nor text.
	Noise int
}

// Decoder finds frames in a stream that may start anywhere. The zero value is ready to use. It
// holds little more than a frame.
type Decoder struct {
	held  []byte
	body  []byte
	frame Frame
	long  bool // the held bytes are the rest of something too long for a frame
}

// Feed takes the next bytes and reports the completed pieces.
func (d *Decoder) Feed(p []byte, found func(Piece)) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, 0)
		if i < 0 {
			d.hold(p, found)
			return
		}
		d.hold(p[:i], found)
		p = p[i+1:]
		d.end(found)
	}
}

// Flush reports the rest of the stream, which no delimiter followed.
func (d *Decoder) Flush(found func(Piece)) {
	if len(d.held) > 0 {
		d.rest(found)
	}
	d.long = false
}

// hold keeps bytes without a delimiter, at most as many as a text may have.
func (d *Decoder) hold(p []byte, found func(Piece)) {
	for len(p) > 0 {
		n := min(len(p), maxText-len(d.held))
		d.held = append(d.held, p[:n]...)
		p = p[n:]
		if len(d.held) == maxText {
			d.rest(found)
			d.long = true
		}
	}
}

// end is called at a delimiter.
func (d *Decoder) end(found func(Piece)) {
	switch {
	case len(d.held) == 0:
	case !d.long && d.decode():
		d.held = d.held[:0]
		found(Piece{Frame: &d.frame})
	default:
		d.rest(found)
	}
	d.long = false
}

// rest reports bytes that are not a frame.
func (d *Decoder) rest(found func(Piece)) {
	if printable(d.held) {
		found(Piece{Text: d.held})
	} else {
		found(Piece{Noise: len(d.held)})
	}
	d.held = d.held[:0]
}

// decode removes the COBS encoding and the checksum from the held bytes.
func (d *Decoder) decode() bool {
	in := d.held
	if len(in) < minFrame || len(in) > maxFrame {
		return false
	}
	out := d.body[:0]
	for i := 0; i < len(in); {
		n := int(in[i])
		if n == 0 || i+n > len(in) {
			return false
		}
		out = append(out, in[i+1:i+n]...)
		i += n
		if i < len(in) && n < 255 {
			out = append(out, 0)
		}
	}
	d.body = out
	n := len(out) - 4
	if n < headBytes {
		return false
	}
	sum := crc32.ChecksumIEEE(out[:n])
	if sum != uint32(out[n])|uint32(out[n+1])<<8|uint32(out[n+2])<<16|uint32(out[n+3])<<24 {
		return false
	}
	d.frame = Frame{Type: Type(out[0]), Sequence: uint16(out[1]) | uint16(out[2])<<8, Body: out[headBytes:n], Check: sum}
	return true
}

// printable reports whether bytes are text, whose first and last character may be truncated.
func printable(b []byte) bool {
	for n := 0; len(b) > 0; n++ {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			if n >= utf8.UTFMax-1 && utf8.FullRune(b) {
				return false
			}
		} else if r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\x1b' && r != '\b' && r != '\a' || r == 0x7F {
			return false
		}
		b = b[size:]
	}
	return true
}

// sure returns the confidence that a stream is the agent's: one frame with a valid checksum is
// not chance.
func sure(head []byte) int {
	var d Decoder
	how := 0
	d.Feed(head, func(p Piece) {
		if p.Frame != nil && known(p.Frame.Type) {
			how = 100
		}
	})
	return how
}
