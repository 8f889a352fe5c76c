package disklog

import (
	"context"
	"errors"
)

// DeleteErased deletes a session and waits until it is gone from the disk.
func DeleteErased(ctx context.Context, s *Store, id string) error {
	return errors.Join(s.DeleteSession(ctx, id, 0, nil), s.WaitErased(ctx, 0))
}
