//go:build !unix || freebsd

package child

import "errors"

func limitData(int64) error { return errors.ErrUnsupported }
