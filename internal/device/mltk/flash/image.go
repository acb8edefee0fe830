// Package flash writes a model into the flash memory of a Silicon Labs board, where the firmware
// of the MLTK model profiler expects it: at the very end, followed by its length. It uses the
// vendor's commander, and downloads nothing.
//
// Source of the layout: mltk/utils/firmware_apps and mltk/utils/commander of the SiliconLabs/mltk
// project.
package flash

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Part is a chip.
type Part struct {
	// Number is its part number, Base the start address of its flash memory, Bytes the size.
	Number string
	Base   uint32
	Bytes  uint32
}

// End is the address after the last byte of flash memory.
func (p Part) End() uint32 { return p.Base + p.Bytes }

var partNumber = lazyregexp.New(`(?i)\b(EFM32|EFR32)([A-Z]{2})(\d{2})([A-Z])(\d{3})F(\d{2,5})([A-Z][A-Z0-9]*)\b`)

// ParsePart parses a part number such as EFR32MG24B310F1536IM48: the series determines the start
// of flash memory, the digits after F are its size in kilobytes.
func ParsePart(s string) (Part, error) {
	m := partNumber.FindStringSubmatch(s)
	if m == nil {
		return Part{}, fmt.Errorf("%q is not a part number: use one such as EFR32MG24B310F1536IM48", s)
	}
	series, _ := strconv.Atoi(m[3]) // two digits
	kilo, _ := strconv.Atoi(m[6])   // at most five
	p := Part{Number: strings.ToUpper(m[0]), Bytes: uint32(kilo) << 10}
	if series >= 23 {
		p.Base = 0x08000000
	}
	return p, nil
}

// platforms maps boards of the MLTK to their chips.
var platforms = map[string]string{
	"brd2204": "EFM32GG11B820F2048GL192", "brd2601": "EFR32MG24B310F1536IM48",
	"brd4166": "EFR32MG12P332F1024GL125", "brd4186": "EFR32MG24B210F1536IM48",
}

var revision = lazyregexp.New(`^brd\d{4}[a-z]?$`)

// Platform returns the chip of a board such as brd2601b; ok is false for an unknown board.
func Platform(name string) (p Part, ok bool) {
	name = strings.ToLower(name)
	if !revision.MatchString(name) {
		return Part{}, false
	}
	number, ok := platforms[name[:7]]
	if !ok {
		return Part{}, false
	}
	p, err := ParsePart(number)
	return p, err == nil
}

// Image is a model with its length, and the start address.
type Image struct {
	Address uint32
	Data    []byte
}

// NewImage creates the contents of the end of a chip's flash memory: the model, followed by its
// length as four bytes, little-endian.
func NewImage(model []byte, p Part) (Image, error) {
	if len(model) == 0 {
		return Image{}, fmt.Errorf("the model is empty")
	}
	if uint64(len(model))+4 > uint64(p.Bytes) {
		return Image{}, fmt.Errorf("the model has %d bytes and 4 for its length, the flash memory of %s %d", len(model), p.Number, p.Bytes)
	}
	data := binary.LittleEndian.AppendUint32(append(make([]byte, 0, len(model)+4), model...), uint32(len(model)))
	return Image{p.End() - uint32(len(data)), data}, nil
}

// OverlapError says that a model does not fit after a firmware.
type OverlapError struct {
	Part Part
	// Model is its start address, Firmware the address after the firmware's last byte.
	Model, Firmware uint32
}

// Error returns both addresses.
func (e *OverlapError) Error() string {
	return fmt.Sprintf("the model does not fit behind the firmware: it would begin at 0x%08X, and the firmware ends at 0x%08X; %s has %d kB of flash memory", e.Model, e.Firmware, e.Part.Number, e.Part.Bytes>>10)
}

// Check rejects a firmware outside the flash memory, or in the place of the model.
func (i Image) Check(firmware []Segment, p Part) error {
	for _, s := range firmware {
		end := uint64(s.Address) + uint64(s.Bytes)
		if s.Address < p.Base || end > uint64(p.End()) {
			if inUserPage(s, p) {
				continue
			}
			return fmt.Errorf("the firmware has %d bytes at 0x%08X, outside the flash memory of %s (0x%08X to 0x%08X): is it for another chip?", s.Bytes, s.Address, p.Number, p.Base, p.End()-1)
		}
		if end > uint64(i.Address) {
			return &OverlapError{Part: p, Model: i.Address, Firmware: uint32(end)}
		}
	}
	return nil
}

// inUserPage reports whether a segment is in the pages for user data and lock bits, which are
// separate flash memory.
func inUserPage(s Segment, p Part) bool {
	return s.Address >= 0x0FE00000 && s.Address < 0x10000000 && p.Base+p.Bytes <= 0x0FE00000
}

// Hex encodes an image as Intel HEX.
func (i Image) Hex() []byte {
	var b strings.Builder
	record := func(kind byte, address uint16, data []byte) {
		sum := byte(len(data)) + byte(address>>8) + byte(address) + kind
		fmt.Fprintf(&b, ":%02X%04X%02X", len(data), address, kind)
		for _, c := range data {
			fmt.Fprintf(&b, "%02X", c)
			sum += c
		}
		fmt.Fprintf(&b, "%02X\r\n", -sum)
	}
	high := uint32(1 << 31) // none yet
	for at := uint32(0); at < uint32(len(i.Data)); {
		address := i.Address + at
		if address>>16 != high {
			high = address >> 16
			record(4, 0, []byte{byte(high >> 8), byte(high)})
		}
		// A record does not cross a block of 64 kilobytes.
		n := min(16, uint32(len(i.Data))-at, 0x10000-address&0xffff)
		record(0, uint16(address), i.Data[at:at+n])
		at += n
	}
	b.WriteString(":00000001FF\r\n")
	return []byte(b.String())
}
