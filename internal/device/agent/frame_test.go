package agent

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// pieces decodes a stream in parts of a size.
func pieces(stream []byte, size int) (frames, texts []string, noise int) {
	var d Decoder
	var text []byte
	take := func(p Piece) {
		switch {
		case p.Frame != nil:
			frames = append(frames, fmt.Sprintf("%d %d %x", p.Frame.Type, p.Frame.Sequence, p.Frame.Body))
			if len(text) > 0 {
				texts = append(texts, string(text))
				text = nil
			}
		case p.Text != nil:
			text = append(text, p.Text...)
		default:
			noise += p.Noise
		}
	}
	for len(stream) > 0 {
		n := min(size, len(stream))
		d.Feed(stream[:n], take)
		stream = stream[n:]
	}
	d.Flush(take)
	if len(text) > 0 {
		texts = append(texts, string(text))
	}
	return frames, texts, noise
}

// TestKnownFrame has the bytes of a frame that was put together by hand: an END of inference 0
// with zeros in it. Its check is that which other implementations of CRC-32 give.
func TestKnownFrame(t *testing.T) {
	t.Parallel()
	// CRC-32 of "123456789" is CBF43926 by the catalogue of such checks: a frame of type '1' with
	// the sequence number '2' + '3' * 256 and the body "456789".
	stream := []byte{0, 14, '1', '2', '3', '4', '5', '6', '7', '8', '9', 0x26, 0x39, 0xF4, 0xCB, 0}
	frames, texts, noise := pieces(stream, 100)
	if len(frames) != 1 || frames[0] != "49 13106 343536373839" || texts != nil || noise != 0 {
		t.Errorf("got %q, %q, %d", frames, texts, noise)
	}
}

// TestDocument reads the example of docs/reference/agent.md.
func TestDocument(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../docs/reference/agent.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "as the eighth frame:\n\n```\n")
	line, _, _ := strings.Cut(rest, "\n")
	stream, err := hex.DecodeString(strings.ReplaceAll(line, " ", ""))
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	var end endFrame
	n := 0
	var d Decoder
	d.Feed(stream, func(p Piece) {
		if p.Frame != nil && p.Frame.Type == TEnd && p.Frame.Sequence == 7 {
			n++
			end, err = parseEnd(p.Frame.Body)
		}
	})
	if n != 1 || err != nil || end != (endFrame{0, 1234, 300, 2, 4}) {
		t.Errorf("%q: %d, %+v, %v", line, n, end, err)
	}
}

// TestFrames sends bodies of every length and many zeros, in parts of every size.
func TestFrames(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 1))
	var stream []byte
	var want []string
	for n := range 246 {
		body := make([]byte, n)
		for i := range body {
			if n%3 == 0 || rnd.IntN(3) > 0 {
				body[i] = byte(rnd.IntN(256))
			}
		}
		stream = append(stream, encode(TData, uint16(n*257), body)...)
		want = append(want, fmt.Sprintf("%d %d %x", TData, n*257, body))
	}
	for _, size := range []int{1, 2, 7, 64, 1 << 20} {
		frames, texts, noise := pieces(stream, size)
		if strings.Join(frames, "\n") != strings.Join(want, "\n") || texts != nil || noise != 0 {
			t.Errorf("parts of %d: %d frames of %d, texts %q, noise %d", size, len(frames), len(want), texts, noise)
		}
	}
}

// TestTextBetweenFrames keeps what a firmware prints, and joins a stream anywhere.
func TestTextBetweenFrames(t *testing.T) {
	t.Parallel()
	a, b := encode(TBegin, 1, []byte{0}), encode(TOp, 2, []byte{1, 0, 200, 1, 0})
	stream := append([]byte("Booting… ok\r\nheap 17 %\n"), a...)
	stream = append(stream, "\x1b[1mwarn\x1b[0m: ADC\n"...)
	stream = append(stream, b...)
	stream = append(stream, "bye"...)
	for size := 1; size < len(stream); size++ {
		frames, texts, noise := pieces(stream, size)
		if len(frames) != 2 || fmt.Sprintf("%q", texts) != `["Booting… ok\r\nheap 17 %\n" "\x1b[1mwarn\x1b[0m: ADC\n" "bye"]` || noise != 0 {
			t.Fatalf("parts of %d: %q, %q, %d", size, frames, texts, noise)
		}
	}
	for at := range stream {
		frames, _, _ := pieces(stream[at:], 9)
		want := 0
		for _, begin := range []int{bytes.Index(stream, a), bytes.Index(stream, b)} {
			// Its first delimiter is not needed where nothing is before it.
			if at <= begin+1 {
				want++
			}
		}
		if len(frames) != want {
			t.Errorf("from byte %d: %d frames, want %d", at, len(frames), want)
		}
	}
}

// TestDamagedFrames flips every bit and cuts every byte of a frame: it is never taken for one.
func TestDamagedFrames(t *testing.T) {
	t.Parallel()
	good := encode(TOp, 7, []byte{1, 0, 200, 0, 0, 3})
	for i := 1; i < len(good)-1; i++ {
		for bit := range 8 {
			p := bytes.Clone(good)
			p[i] ^= 1 << bit
			if frames, _, _ := pieces(p, 100); len(frames) != 0 {
				t.Errorf("bit %d of byte %d: taken as %q", bit, i, frames)
			}
		}
		if frames, _, _ := pieces(append(bytes.Clone(good[:i]), good[i+1:]...), 100); len(frames) != 0 {
			t.Errorf("without byte %d: taken as %q", i, frames)
		}
	}
}

// TestEndless holds no more than a bounded number of bytes of a stream without delimiters.
func TestEndless(t *testing.T) {
	t.Parallel()
	for _, fill := range []string{"text without an end ", "\x80\x81\x01\xff"} {
		var d Decoder
		n := 0
		p := []byte(strings.Repeat(fill, 1000))
		for range 100 {
			d.Feed(p, func(p Piece) { n += len(p.Text) + p.Noise })
		}
		if cap(d.held) > 4*maxText || n < 100*len(p)-maxText {
			t.Errorf("%q: %d bytes are held, %d were told of", fill[:3], cap(d.held), n)
		}
		frames := 0
		d.Feed(append([]byte{0}, encode(TDone, 0, []byte{0})...), func(p Piece) {
			if p.Frame != nil {
				frames++
			}
		})
		if frames != 1 {
			t.Errorf("%q: the frame after it is lost", fill[:3])
		}
	}
}

func TestSure(t *testing.T) {
	t.Parallel()
	var stream []byte
	b := newBoard(func(p []byte) { stream = append(stream, p...) })
	b.start()
	b.inferenceBegin()
	if got := sure(stream[30:]); got != 100 {
		t.Errorf("from the middle of a frame: %d", got)
	}
	for _, other := range []string{"", "hello world\n", "\x00\x00\x00", strings.Repeat("\x00\xfe\x80junk", 1000), string(stream[:10])} {
		if got := sure([]byte(other)); got != 0 {
			t.Errorf("%.20q: %d, want 0", other, got)
		}
	}
}
