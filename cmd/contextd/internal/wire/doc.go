// Package wire converts between the API's messages and the domain's values. It is pure: conversions look
// nothing up, add no defaults and keep no state.
//
// It checks what protovalidate's rules in the API cannot express: JSON fields hold JSON, names hold no NUL,
// times are valid. Such an error is an *eventlog.InvalidError whose field is a path within the converted
// message.
package wire
