package profile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/opmeter/opmeter/internal/base/jsonx"
)

// MaxBytes bounds the JSON text of a profile that is read, 1 GiB.
const MaxBytes = 1 << 30

// Encode writes p as indented JSON. It fails when p is not valid, so that a
// wrong figure is found where it is made and not where it is read. The text is
// never held as a whole.
func (p *Profile) Encode(w io.Writer) error {
	if err := p.Validate(); err != nil {
		return err
	}
	return jsonx.MarshalWrite(w, p)
}

// Decode reads JSON text and checks it. Keys that this version does not know are
// ignored. It reads at most [MaxBytes] and holds only what it decodes.
func Decode(r io.Reader) (*Profile, error) { return decode(&bounded{r: r, left: MaxBytes}) }

// bounded fails where io.LimitReader would pretend that the text ends.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("larger than %d bytes", MaxBytes)
	}
	return n, err
}

func decode(r io.Reader) (*Profile, error) {
	br := bufio.NewReader(r)
	if bom, _ := br.Peek(3); string(bom) == "\ufeff" {
		_, _ = br.Discard(3)
	}
	// The schema comes first: a file of another version gets that message and not
	// one about the first field that differs.
	head, _ := br.Peek(1024)
	var text io.Reader = br
	name, schema, ok := jsonx.FirstString(head)
	if !ok || name != "schema" {
		// Not as this program writes it. Members may stand in any order.
		b, err := io.ReadAll(br)
		if err != nil {
			return nil, err
		}
		var head struct {
			Schema string `json:"schema"`
		}
		if err := jsonx.Unmarshal(b, &head); err != nil {
			return nil, fmt.Errorf("not a profile: %w", err)
		}
		schema, text = head.Schema, bytes.NewReader(b)
	}
	if schema != SchemaV1 {
		return nil, fmt.Errorf("schema is %q; this version reads %q", schema, SchemaV1)
	}
	p := &Profile{}
	if err := jsonx.UnmarshalRead(text, p); err != nil {
		if jsonx.IsSyntax(err) {
			return nil, fmt.Errorf("not a profile: %w", err)
		}
		return nil, fmt.Errorf("profile: %w", err)
	}
	p.currentBounds()
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	p.complete()
	return p, nil
}

// complete makes the lists that are always written where the text had none, so that
// what was read equals what is written of it.
func (p *Profile) complete() {
	if p.Layers == nil {
		p.Layers = []Layer{}
	}
	if p.Timeline != nil {
		p.Timeline.Complete()
	}
}

// isJSON tells JSON text from a saved profile by its beginning.
func isJSON(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n\ufeff")
	return len(b) > 0 && b[0] == '{'
}
