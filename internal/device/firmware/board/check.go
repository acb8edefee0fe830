package board

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Allowed forms of names in a description that are copied into C, make and command lines, where
// they must have no special meaning.
var (
	plainName    = lazyregexp.New(`^[a-z][a-z0-9-]{0,63}$`)
	regionName   = lazyregexp.New(`^[a-z][a-z0-9_]{0,31}$`)
	compilerFlag = lazyregexp.New(`^-[mOD][A-Za-z0-9_+=.,-]+$`)
	processor    = lazyregexp.New(`^[a-z0-9+.-]{1,64}$`)
)

// defaults sets what a description omits.
func (b *Board) defaults() {
	if b.Stack == 0 {
		b.Stack = 16 << 10
	}
	u := &b.UART
	if u.Speed == 0 {
		u.Speed = 115200
	}
	if u.Kind == "cmsdk" {
		// The APB UART of Arm's Cortex-M System Design Kit: DATA, STATE (bit 0 is set while the
		// transmitter is full), CTRL (bit 0 enables it), BAUDDIV.
		u.Data = &Data{Offset: 0}
		u.Status = &Status{Offset: 4, Mask: 1, Ready: 0}
		u.Divisor = &Rate{Offset: 0x10}
		u.Writes = []Step{{Offset: new(Address(8)), Value: new(Address(1))}}
	}
	if u.Width == 0 {
		u.Width = 32
	}
	if u.Divisor != nil && u.Divisor.Factor == 0 {
		u.Divisor.Factor = 1
	}
	for i := range b.Setup {
		if b.Setup[i].Width == 0 {
			b.Setup[i].Width = 32
		}
	}
	for i := range u.Writes {
		w := &u.Writes[i]
		if w.Width == 0 {
			w.Width = u.Width
		}
		if w.Offset != nil {
			w.Address = u.Base + *w.Offset
		}
	}
}

// check validates what types alone do not.
func (d *decoder) check(b *Board) {
	if !plainName.MatchString(b.Name) {
		d.fail("name", "is %q; expected lower-case letters, digits and dashes", b.Name)
	}
	for i, a := range b.Aliases {
		if !plainName.MatchString(a) {
			d.fail(fmt.Sprintf("aliases[%d]", i), "is %q; expected lower-case letters, digits and dashes", a)
		}
	}
	if !processor.MatchString(b.CPU) {
		d.fail("cpu", "is %q; expected a processor as the compiler's -mcpu has it, such as cortex-m4", b.CPU)
	}
	for i, f := range b.Flags {
		if !compilerFlag.MatchString(f) {
			d.fail(fmt.Sprintf("flags[%d]", i), "is %q; expected a flag that begins with -m, -O or -D", f)
		}
	}
	d.memories(b)
	d.steps("setup", b.Setup, false)
	d.uart(&b.UART)
	d.counter(&b.Counter)
	if e := b.Emulator; e != nil {
		if !plainName.MatchString(e.Machine) {
			d.fail("emulator.machine", "is %q; expected a machine of qemu-system-arm", e.Machine)
		}
		// QEMU accepts 0 to 10. With fewer than two ticks per instruction, a figure could be off
		// by one.
		if e.Shift > 10 {
			d.fail("emulator.shift", "is %d; expected at most 10", e.Shift)
		} else if b.Counter.Hz > 0 {
			switch num, den := b.Scale(); {
			case num == 0 || den == 0:
				d.fail("emulator.shift", "is %d: at %d Hz an instruction is not a fraction of 32-bit numbers; choose another frequency or shift", e.Shift, b.Counter.Hz)
			case den/2 < num:
				d.fail("emulator.shift", "is %d: an instruction takes only %.2f ticks of the counter; expected at least 2 so that figures are exact", e.Shift, float64(den)/float64(num))
			}
		}
	}
}

func (d *decoder) memories(b *Board) {
	if len(b.Memories) == 0 {
		d.fail("memories", "is missing; expected a list such as [{name: flash, origin: 0x08000000, size: 1MiB, holds: [code, weights]}, …]")
		return
	}
	holder, names := map[string]string{}, map[string]bool{}
	for i, m := range b.Memories {
		key := fmt.Sprintf("memories[%d]", i)
		if !regionName.MatchString(m.Name) || names[m.Name] {
			d.fail(key+".name", "is %q; expected a name of its own of lower-case letters, digits and underscores", m.Name)
		}
		names[m.Name] = true
		if m.Size < 1<<10 || int64(m.Origin)+int64(m.Size) > 1<<32 {
			d.fail(key+".size", "is %d bytes at 0x%08x; expected at least 1 KiB that end within 32-bit addresses", m.Size, m.Origin)
		}
		if m.Origin%16 != 0 {
			d.fail(key+".origin", "is 0x%08x; expected a multiple of 16", m.Origin)
		}
		for _, r := range m.Holds {
			switch {
			case !slices.Contains(Roles, r):
				d.fail(key+".holds", "has %q; expected some of %s", r, strings.Join(Roles, ", "))
			case holder[r] != "":
				d.fail(key+".holds", "has %s, which %s holds too", r, holder[r])
			default:
				holder[r] = m.Name
			}
		}
	}
	for _, r := range Roles {
		if holder[r] == "" {
			d.fail("memories", "no memory holds %s", r)
		}
	}
	if s := b.memory("stack"); s != nil && (b.Stack < 1<<10 || b.Stack+handlerStack > s.Size || b.Stack%16 != 0) {
		d.fail("stack", "is %d bytes; expected a multiple of 16, at least 1 KiB, that fits into %s (%d bytes)", b.Stack, s.Name, s.Size)
	}
}

func (d *decoder) steps(key string, steps []Step, offsets bool) {
	for i, s := range steps {
		at := fmt.Sprintf("%s[%d]", key, i)
		_, placed := d.lines[at+".address"]
		if !offsets && s.Offset != nil {
			d.fail(at+".offset", "is for the writes of a UART; expected address")
		} else if !placed && s.Offset == nil {
			d.fail(at, "has no address")
		}
		ways := 0
		for _, is := range []bool{s.Value != nil, s.Clear != 0 || s.Set != 0, s.Wait != 0} {
			if is {
				ways++
			}
		}
		if ways != 1 {
			d.fail(at, "expected one of: value; clear and set; wait and ready")
		}
		if int(s.Address)%(int(s.Width)/8) != 0 {
			d.fail(at, "is at 0x%08x, where no register of %d bits can be", s.Address, s.Width)
		}
	}
}

func (d *decoder) uart(u *UART) {
	switch u.Kind {
	case "cmsdk":
		d.lines["uart.writes[0].offset"] = d.lines["uart"]
	case "registers":
	case "":
		d.fail("uart.kind", "is missing; expected cmsdk or registers")
		return
	default:
		d.fail("uart.kind", "is %q; expected cmsdk or registers (a UART that works by DMA only, such as nRF's UARTE, cannot be described)", u.Kind)
		return
	}
	if u.Base == 0 {
		d.fail("uart.base", "is missing; expected the address of its registers")
	}
	if u.Data == nil {
		d.fail("uart.data", "is missing; expected the register that a byte is written to")
	}
	if u.Status == nil {
		d.fail("uart.status", "is missing; expected the register that says when a byte may be written")
	} else if u.Status.Mask == 0 || u.Status.Ready&^u.Status.Mask != 0 {
		d.fail("uart.status.mask", "is 0x%x with ready 0x%x; expected the bits that are looked at, and those of them that are set when a byte may be written", u.Status.Mask, u.Status.Ready)
	}
	if u.Speed < 300 || u.Speed > 10e6 {
		d.fail("uart.speed", "is %d; expected 300 to 10000000 baud", u.Speed)
	}
	if u.Divisor != nil {
		if v := u.divisor(); u.Clock <= 0 || !(v >= 1 && v < 1<<32) {
			d.fail("uart.divisor", "comes to %.0f at a clock of %d Hz and %d baud; expected 1 to 2^32 - 1", v, u.Clock, u.Speed)
		}
	}
	d.steps("uart.writes", u.Writes, true)
}

// divisor returns the baud rate divisor.
func (u *UART) divisor() float64 {
	return math.Round(float64(u.Clock)*float64(u.Divisor.Factor)/float64(u.Speed)) - float64(u.Divisor.Minus)
}

func (d *decoder) counter(c *Counter) {
	switch c.Kind {
	case "dwt", "systick":
	case "register":
		if c.Address == 0 {
			d.fail("counter.address", "is missing; expected that of the counter's register")
		}
		// The slow counter must distinguish the rounds of 2^32, with a wide margin.
		if r := c.Rounds; r != nil && (r.Address == 0 || r.Hz < 1 || c.Hz/r.Hz < 2 || c.Hz/r.Hz > 1<<28) {
			d.fail("counter.rounds", "is at 0x%08x with %d Hz; expected an address and a frequency between a part in 2^28 and half of counter.hz", r.Address, r.Hz)
		}
	default:
		d.fail("counter.kind", "is %q; expected dwt, systick or register", c.Kind)
	}
	if c.Hz <= 0 || c.Hz > 10e9 {
		d.fail("counter.hz", "is %d; expected what it counts in a second", c.Hz)
	}
}
