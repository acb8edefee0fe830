package profile

import (
	"bytes"
	"fmt"
	"io"

	"github.com/opmeter/opmeter/internal/jsonx"
)

// MaxBytes bounds the JSON text of a profile that is read, 1 GiB.
const MaxBytes = 1 << 30

// Encode writes p as indented JSON. It fails when p is not valid, so that a
// wrong figure is found where it is made and not where it is read.
func (p *Profile) Encode(w io.Writer) error {
	if err := p.Validate(); err != nil {
		return err
	}
	return jsonx.MarshalWrite(w, p)
}

// Decode reads JSON text and checks it. Keys that this version does not know are
// ignored. It reads at most [MaxBytes].
func Decode(r io.Reader) (*Profile, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("profile is larger than %d bytes", MaxBytes)
	}
	return decode(b)
}

func decode(b []byte) (*Profile, error) {
	// The schema comes first: a file of another version gets that message and not
	// one about the first field that differs.
	var head struct {
		Schema string `json:"schema"`
	}
	if err := jsonx.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("not a profile: %w", err)
	}
	if head.Schema != SchemaV1 {
		return nil, fmt.Errorf("schema is %q; this version reads %q", head.Schema, SchemaV1)
	}
	p := &Profile{}
	if err := jsonx.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if p.Layers == nil {
		p.Layers = []Layer{} // as written: the list is always there
	}
	return p, nil
}

// isJSON tells JSON text from a saved profile.
func isJSON(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n\ufeff")
	return len(b) > 0 && b[0] == '{'
}
