package contextd.example;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.rpc.BadRequest;
import com.google.rpc.Code;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import contextd.v1.Assembly.BudgetExceeded;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.Optional;

/** What an error of the API says; docs/api-errors.md lists the reasons. */
record ApiError(com.google.rpc.Status status) {
  static ApiError of(StatusRuntimeException e) {
    return new ApiError(StatusProto.fromThrowable(e));
  }

  /** The code as google.rpc.Code names it. */
  String code() {
    return Code.forNumber(status.getCode()).name();
  }

  /** The first field at fault, or nothing. */
  String field() {
    return detail(BadRequest.class).map(d -> d.getFieldViolations(0).getField()).orElse("");
  }

  /** The stable word for what happened, with its metadata. */
  ErrorInfo info() {
    return detail(ErrorInfo.class).orElse(ErrorInfo.getDefaultInstance());
  }

  /** How long to wait before trying again. Empty: waiting does not help. */
  Optional<Duration> retry() {
    return detail(RetryInfo.class)
        .map(d -> Duration.ofSeconds(d.getRetryDelay().getSeconds(), d.getRetryDelay().getNanos()));
  }

  /** No daemon answered, which would have given a reason. */
  boolean unanswered() {
    return status.getCode() == Code.UNAVAILABLE_VALUE && info().getReason().isEmpty();
  }

  /** What of a context cannot be reduced. */
  Optional<BudgetExceeded> budgetExceeded() {
    return detail(BudgetExceeded.class);
  }

  private <T extends Message> Optional<T> detail(Class<T> type) {
    for (Any any : status.getDetailsList()) {
      if (any.is(type)) {
        try {
          return Optional.of(any.unpack(type));
        } catch (InvalidProtocolBufferException e) {
          throw new IllegalStateException("a detail of an error cannot be read", e);
        }
      }
    }
    return Optional.empty();
  }
}
