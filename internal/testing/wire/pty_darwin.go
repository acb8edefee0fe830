package wire

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)

func baud(s *unix.Termios) int { return int(s.Ospeed) }

// noSpeed sets no speed, which hosts never do.
func noSpeed(s *unix.Termios) { s.Ispeed, s.Ospeed = 0, 0 }
