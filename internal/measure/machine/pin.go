package machine

import "errors"

// ErrNoPinning is returned if the system cannot bind threads to processors.
var ErrNoPinning = errors.New("this system cannot bind threads to processors")
