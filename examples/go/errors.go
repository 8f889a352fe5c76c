package main

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// details are what an error of the API says; docs/api-errors.md lists the reasons.
type details struct {
	code     string // as google.rpc.Code names it
	reason   string
	metadata map[string]string
	field    string        // the first field at fault, or empty
	retry    time.Duration // 0: waiting does not help
	parts    []*contextdv1.IrreduciblePart
}

func detailsOf(err error) details {
	st := status.Convert(err)
	d := details{code: code.Code(st.Code()).String()}
	for _, detail := range st.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			d.reason, d.metadata = detail.GetReason(), detail.GetMetadata()
		case *errdetails.BadRequest:
			d.field = detail.GetFieldViolations()[0].GetField()
		case *errdetails.RetryInfo:
			d.retry = detail.GetRetryDelay().AsDuration()
		case *contextdv1.BudgetExceeded:
			d.parts = detail.GetParts()
		}
	}
	return d
}
