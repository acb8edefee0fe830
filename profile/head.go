package profile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/opmeter/opmeter/internal/jsonx"
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
	// Totals holds the figures of the whole model without samples.
	Totals Totals `json:"totals"`
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
)

// HeadOf makes the head of a profile.
func HeadOf(p *Profile) *Head {
	h := &Head{
		Schema: p.Schema, Created: p.Created, Version: brief(p.Settings.Version), Engine: brief(p.Settings.Engine),
		Model:   HeadModel{brief(p.Model.Name), brief(p.Model.Format), p.Model.SHA256, p.Model.StructureSHA256, p.Model.WeightsSHA256, p.Model.FileBytes},
		Target:  p.Target,
		Threads: p.Settings.Threads, Batch: p.Settings.Batch, Seed: p.Settings.Seed, Totals: p.Totals,
	}
	for _, s := range []*string{&h.Target.ID, &h.Target.Accelerator, &h.Target.Engine, &h.Target.PeakMethod, &h.Target.Description, &h.Created} {
		*s = brief(*s)
	}
	if p.Host != nil {
		h.Fingerprint = brief(p.Host.Fingerprint)
	}
	for _, m := range p.Incomplete {
		if len(h.Incomplete) < 8 {
			h.Incomplete = append(h.Incomplete, m.Cause)
		}
	}
	t := &h.Totals
	t.LatencySamples = nil
	if len(t.Figures) > headFigures {
		t.Figures = nil
	}
	for _, m := range []**Metric{&t.Latency, &t.CPUCycles, &t.AcceleratorCycles, &t.SimulatorCycles, &t.Energy} {
		if *m != nil {
			c := **m
			c.Method = brief(c.Method)
			*m = &c
		}
	}
	return h
}

// brief cuts a text.
func brief(s string) string {
	n := 0
	for i := range s {
		if n++; n > headText {
			return s[:i] + "…"
		}
	}
	return s
}

// ReadHead reads the head of a saved profile without the rest. The head has a
// checksum of its own; damage behind it shows when the profile is read. The error of
// a file that is no saved profile wraps [ErrNotProfile].
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
	if need := headerBytes + int(c.head); need > len(buf) {
		more := make([]byte, need-len(buf))
		if _, err := io.ReadFull(f, more); err != nil {
			return nil, fmt.Errorf("cut off within its head of %d bytes", c.head)
		}
		buf = append(buf, more...)
	}
	return c.decode(buf[headerBytes : headerBytes+int(c.head)])
}

// header is the fixed beginning of a saved profile.
type header struct {
	head    uint32 // bytes of the head's text
	headSum uint32 // CRC-32C of it
	length  uint64 // bytes of the body, not compressed
	sum     []byte // SHA-256 of the body
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

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
	h := &header{head: binary.LittleEndian.Uint32(b[12:]), headSum: binary.LittleEndian.Uint32(b[16:]), length: binary.LittleEndian.Uint64(b[24:]), sum: append([]byte(nil), b[32:64]...)}
	if h.head > maxHead {
		return nil, fmt.Errorf("says its head has %d bytes, more than %d", h.head, maxHead)
	}
	if h.length > MaxBytes {
		return nil, fmt.Errorf("says it holds %d bytes, more than %d", h.length, MaxBytes)
	}
	return h, nil
}

// decode reads the head's text.
func (c *header) decode(text []byte) (*Head, error) {
	if crc32.Checksum(text, castagnoli) != c.headSum {
		return nil, errors.New("damaged: the checksum of the head does not match")
	}
	h := &Head{}
	if err := jsonx.Unmarshal(text, h); err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	if h.Schema != SchemaV1 {
		return nil, fmt.Errorf("schema is %q; this version reads %q", h.Schema, SchemaV1)
	}
	return h, nil
}
