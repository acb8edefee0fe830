package port

import (
	"fmt"
	"strings"
)

// Cause is the reason why a port cannot be opened.
type Cause string

// Causes.
const (
	Missing     Cause = "missing"     // no such device, program, file or host
	Permission  Cause = "permission"  // the user may not
	Busy        Cause = "busy"        // another program has it
	Refused     Cause = "refused"     // nobody listens there
	Unreachable Cause = "unreachable" // no way to the host
	Silent      Cause = "silent"      // no answer in time
	NotSerial   Cause = "not-serial"  // there is something, but no serial port
	BadSpeed    Cause = "speed"       // it does not have that speed
	BadAddress  Cause = "address"     // the address makes no sense
	Unsupported Cause = "unsupported" // not on this system
	Failed      Cause = "failed"      // anything else: Err has it
)

// OpenError says why a port cannot be opened.
type OpenError struct {
	Address Address
	Cause   Cause
	// Holders are the processes that use it, as far as visible, with [Busy].
	Holders []Holder
	// Advice is what to do, "" if unknown.
	Advice string
	// Err is the system's error, nil for none.
	Err error
}

// Error returns the port, the problem and the advice.
func (e *OpenError) Error() string {
	var b strings.Builder
	b.WriteString(clip(e.Address.String(), 200) + ": ")
	switch e.Cause {
	case Missing:
		switch e.Address.Kind {
		case Serial:
			b.WriteString("no such device")
		case TCP:
			b.WriteString("no such host")
		case Exec:
			b.WriteString("no such program")
		default:
			b.WriteString("no such file")
		}
	case Permission:
		b.WriteString("permission denied")
	case Busy:
		b.WriteString("in use" + heldBy(e.Holders))
	case Refused:
		b.WriteString("connection refused: nothing listens there")
	case Unreachable:
		b.WriteString("the host cannot be reached")
	case Silent:
		b.WriteString("no answer")
	case NotSerial:
		b.WriteString("no serial port")
	case BadSpeed:
		b.WriteString("no such speed")
	default:
		b.WriteString("cannot be opened")
	}
	switch e.Cause {
	case BadSpeed, NotSerial, BadAddress, Unsupported, Failed:
		if e.Err != nil {
			fmt.Fprintf(&b, ": %v", e.Err)
		}
	}
	if e.Advice != "" {
		b.WriteString("; " + e.Advice)
	}
	return b.String()
}

func (e *OpenError) Unwrap() error { return e.Err }

// Holder is a process that has a port open.
type Holder struct {
	PID int `json:"pid"`
	// Program is its name, or its command line if it is an opmeter process.
	Program string `json:"program"`
	// Lock says that it is another run of this program.
	Lock bool `json:"lock"`
}

// String returns the program and its process id.
func (h Holder) String() string {
	if h.Program == "" {
		return fmt.Sprintf("process %d", h.PID)
	}
	return fmt.Sprintf("%s (process %d)", h.Program, h.PID)
}

// heldBy names holders after "in use".
func heldBy(list []Holder) string {
	if len(list) == 0 {
		return " by another program"
	}
	return " by " + holderNames(list)
}

// holderNames lists processes, at most the first few.
func holderNames(list []Holder) string {
	names := make([]string, 0, len(list))
	for _, h := range list[:min(len(list), 3)] {
		names = append(names, h.String())
	}
	if n := len(list) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, " and ")
}

// BusyAdvice says how to free a port.
func BusyAdvice(list []Holder) string {
	for _, h := range list {
		if h.Program == "ModemManager" {
			return "it looks for modems for half a minute after a device is plugged in: wait, or stop it with sudo systemctl stop ModemManager"
		}
	}
	if len(list) == 1 {
		return fmt.Sprintf("end that program (kill %d), or close its serial monitor", list[0].PID)
	}
	return "end that program, or close its serial monitor"
}

// lastLine returns the last non-blank line of a text.
func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:])
}
