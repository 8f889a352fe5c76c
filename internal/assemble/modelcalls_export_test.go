package assemble

import (
	"context"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Calibration is what an assembly under the budget is corrected by.
func (e *Engine) Calibration(ctx context.Context, sessionID string, asOf eventlog.Seq, b budget.Budget) (budget.Calibration, uint64, error) {
	return e.calibration(ctx, sessionID, asOf, b)
}
