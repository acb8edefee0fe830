package wire

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)

func baud(s *unix.Termios) int { return int(s.Ospeed) }
