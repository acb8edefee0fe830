package profile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"

	"github.com/opmeter/opmeter/internal/base/jsonx"
)

// Head is what a list of saved profiles shows: a few kilobytes at the beginning of
// the file, read without the rest.
type Head struct {
	// Schema names the format of the data, [SchemaV1].
	Schema string `json:"schema"`
	// Created is the time of the run, RFC 3339 in UTC.
	Created string `json:"created,omitzero"`
	// Version of opmeter that made the profile.
	Version string `json:"version,omitzero"`
	// Incomplete says that something is missing, by cause.
	Incomplete []CauseCode `json:"incomplete,omitzero"`
	// Model identifies the model: names, format, hashes, size.
	Model HeadModel `json:"model"`
	// Target is what it ran on, or was estimated for.
	Target Target `json:"target"`
	// Engine, Threads, Batch and Seed are what was asked for.
	Engine  string  `json:"engine,omitzero"`
	Threads *int64  `json:"threads,omitzero"`
	Batch   *int64  `json:"batch,omitzero"`
	Seed    *uint64 `json:"seed,omitzero"`
	// Fingerprint is that of the machine.
	Fingerprint string `json:"fingerprint,omitzero"`
	// Verdict says whether the latency may be quoted, empty where nothing was measured.
	Verdict Verdict `json:"verdict,omitzero"`
	// Totals holds the figures of the whole model without samples.
	Totals Totals `json:"totals"`
	// Memory holds the sizes of the memory plan without the plan.
	Memory *Memory `json:"memory,omitzero"`
}

// HeadModel is what tells models apart.
type HeadModel struct {
	Name            string `json:"name"`
	Format          string `json:"format,omitzero"`
	SHA256          string `json:"sha256,omitzero"`
	StructureSHA256 string `json:"structure_sha256,omitzero"`
	WeightsSHA256   string `json:"weights_sha256,omitzero"`
	FileBytes       *int64 `json:"file_bytes,omitzero"`
}

// Bounds of the head: what is longer is cut, so that a list reads little.
const (
	maxHead     = 16 << 10
	headText    = 200 // runes of a name or text
	headFigures = 32
	headCauses  = 8
)

// HeadOf makes the head of a profile. Texts are cut and foreign figures left out so
// that it stays within its bound whatever the profile holds.
func HeadOf(p *Profile) *Head {
	h, _ := fitHead(p)
	return h
}

// fitHead makes the head and its text. A rune takes six bytes at most in JSON, so
// that the short form always fits.
func fitHead(p *Profile) (*Head, []byte) {
	for _, b := range []struct{ text, figures int }{{headText, headFigures}, {headText, 0}, {headText / 8, 0}} {
		h := headOf(p, b.text, b.figures)
		if text, err := jsonx.Marshal(h); err == nil && len(text) <= maxHead {
			return h, text
		}
	}
	return headOf(p, headText/8, 0), nil // figures that are none: the profile is not valid
}

func headOf(p *Profile, runes, figures int) *Head {
	h := &Head{
		Schema: p.Schema, Created: p.Created, Version: p.Settings.Version, Engine: p.Settings.Engine,
		Model:   HeadModel{p.Model.Name, p.Model.Format, p.Model.SHA256, p.Model.StructureSHA256, p.Model.WeightsSHA256, p.Model.FileBytes},
		Target:  p.Target,
		Threads: p.Settings.Threads, Batch: p.Settings.Batch, Seed: p.Settings.Seed, Totals: p.Totals,
	}
	h.Target.Peaks, h.Target.Levels = nil, nil
	if p.Host != nil {
		h.Fingerprint = p.Host.Fingerprint
	}
	if p.Trust != nil {
		h.Verdict = p.Trust.Verdict
	}
	if p.Memory != nil {
		m := *p.Memory
		m.StepLayers, m.Plan, m.Planner = nil, nil, brief(m.Planner, runes)
		h.Memory = &m
	}
	for _, s := range []*string{
		&h.Created, &h.Version, &h.Engine, &h.Fingerprint, &h.Model.Name, &h.Model.Format,
		&h.Target.ID, &h.Target.Accelerator, &h.Target.Engine, &h.Target.PeakMethod, &h.Target.Description,
	} {
		*s = brief(*s, runes)
	}
	for _, m := range p.Incomplete {
		if len(h.Incomplete) < headCauses && !slices.Contains(h.Incomplete, m.Cause) {
			h.Incomplete = append(h.Incomplete, m.Cause)
		}
	}
	t := &h.Totals
	t.LatencySamples = nil
	for _, m := range []**Metric{&t.Latency, &t.CPUCycles, &t.AcceleratorCycles, &t.SimulatorCycles, &t.Energy} {
		*m = briefMetric(*m, runes)
	}
	t.Figures = nil
	if n := len(p.Totals.Figures); n > 0 && n <= figures {
		t.Figures = make(map[string]*Metric, n)
		for k, m := range p.Totals.Figures {
			t.Figures[k] = briefMetric(m, runes)
		}
	}
	return h
}

func briefMetric(m *Metric, runes int) *Metric {
	if m == nil {
		return nil
	}
	c := *m
	c.Method = brief(c.Method, runes)
	return &c
}

// brief cuts a text to a number of runes.
func brief(s string, runes int) string {
	n := 0
	for i := range s {
		if n++; n > runes {
			return s[:i] + "…"
		}
	}
	return s
}

// ReadHead reads the head of a saved profile without the rest. The head has a
// checksum of its own; damage behind it shows when the profile is read. The error of
// a file that is not a saved profile wraps [ErrNotProfile].
func ReadHead(path string) (*Head, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, withName(path, err)
	}
	defer f.Close()
	h, err := readHead(f)
	if err != nil {
		return nil, withName(path, err)
	}
	return h, nil
}

func readHead(f io.Reader) (*Head, error) {
	buf := make([]byte, 4<<10) // most heads fit: one read
	n, err := io.ReadFull(f, buf)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	buf = buf[:n]
	c, err := parseHeader(buf)
	if err != nil {
		return nil, err
	}
	if need := headerBytes + c.head; need > len(buf) {
		more := make([]byte, need-len(buf))
		if _, err := io.ReadFull(f, more); err != nil {
			return nil, fmt.Errorf("cut off within its head of %d bytes", c.head)
		}
		buf = append(buf, more...)
	}
	return c.decode(buf[:headerBytes+c.head])
}

// header is the fixed beginning of a saved profile.
type header struct {
	head   int    // bytes of the head's text
	packed uint64 // bytes of the body as they stand in the file
	length uint64 // bytes of the body before compression
	sum    []byte // SHA-256 of the body as it stands in the file
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// headSum is the checksum of header and head but for the field that holds it.
func headSum(begin []byte) uint32 {
	sum := crc32.Update(0, castagnoli, begin[:sumAt])
	return crc32.Update(sum, castagnoli, begin[sumAt+4:])
}

// parseHeader checks the beginning of a file.
func parseHeader(b []byte) (*header, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: empty", ErrNotProfile)
	}
	if n := min(len(b), len(fileMagic)); string(b[:n]) != fileMagic[:n] {
		if len(b) > 4 && string(b[1:4]) == "OPM" {
			return nil, fmt.Errorf("%w: line ends were changed on the way (copied as text)", ErrNotProfile)
		}
		return nil, fmt.Errorf("%w: does not begin with its magic number", ErrNotProfile)
	}
	if len(b) < headerBytes {
		return nil, fmt.Errorf("cut off: %d bytes of a header of %d", len(b), headerBytes)
	}
	if v := binary.LittleEndian.Uint16(b[8:]); v != fileVersion {
		return nil, fmt.Errorf("container version %d; this version reads %d", v, fileVersion)
	}
	h := &header{
		head:   int(binary.LittleEndian.Uint16(b[10:])),
		packed: binary.LittleEndian.Uint64(b[16:]),
		length: binary.LittleEndian.Uint64(b[24:]),
		sum:    append([]byte(nil), b[32:64]...),
	}
	if h.head > maxHead {
		return nil, fmt.Errorf("says its head has %d bytes, more than %d", h.head, maxHead)
	}
	if h.length > MaxBytes || h.packed > MaxBytes {
		return nil, fmt.Errorf("says it holds %d bytes, more than %d", max(h.length, h.packed), MaxBytes)
	}
	return h, nil
}

// decode reads the head's text; begin is header and head.
func (h *header) decode(begin []byte) (*Head, error) {
	if headSum(begin) != binary.LittleEndian.Uint32(begin[sumAt:]) {
		return nil, errors.New("damaged: the checksum of the head does not match")
	}
	head := &Head{}
	if err := jsonx.Unmarshal(begin[headerBytes:], head); err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	if head.Schema != SchemaV1 {
		return nil, fmt.Errorf("schema is %q; this version reads %q", head.Schema, SchemaV1)
	}
	return head, nil
}
