//! The alerts of a key, and of the cap of an account.

use askama::Template;
use axum::extract::{Form, Path};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::visit::{Page, Visit, local_path, render, status_of};
use crate::console::operations::alerts::{self, AlertTargetInput, AlertsInput};
use crate::console::operations::{accounts, keys};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::texts::fill;
use crate::console::views::{
    AccountSpendingView, AlertRecipientView, AlertView, AlertWithSecret, KeyView,
};

const SECTION: &str = "keys";

/// The form of a new alert, and of other thresholds.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AlertForm {
    pub percents: String,
    /// `person:HANDLE`, `email` or `webhook`.
    pub to: String,
    pub email: String,
    pub webhook: String,
    /// The page that the form stands on.
    pub next: String,
}

#[derive(Template)]
#[template(path = "alerts.html")]
struct AlertsPage {
    page: Page,
    key: Option<KeyView>,
    account: AccountSpendingView,
    alerts: Vec<AlertView>,
    /// Who can be told by mail; `None`: alerts are not for the actor to make.
    recipients: Option<Vec<AlertRecipientView>>,
    has_mail: bool,
    form: AlertForm,
    back: String,
    /// The path of this page.
    path: String,
}

#[derive(Template)]
#[template(path = "alert_secret.html")]
struct AlertSecretPage {
    page: Page,
    secret: String,
    next: String,
}

impl AlertForm {
    fn new() -> AlertForm {
        AlertForm {
            percents: "50, 80, 100".to_owned(),
            ..AlertForm::default()
        }
    }

    fn percents(&self) -> Result<Vec<u8>, Refusal> {
        let words = self.percents.split([',', ' ', '%', '，', '、']);
        let words = words.filter(|word| !word.is_empty());
        let percents: Result<Vec<u8>, _> = words.map(str::parse).collect();
        // What is no number is none of the thresholds that may be.
        Ok(percents.unwrap_or_default())
    }

    fn target(&self) -> Result<AlertTargetInput, Refusal> {
        let mut target = AlertTargetInput::default();
        match self.to.as_str() {
            "email" => target.email = Some(self.email.clone()),
            "webhook" => target.webhook = Some(self.webhook.clone()),
            to => {
                let handle = to.strip_prefix("person:");
                target.person = Some(handle.ok_or(InputProblem::AlertTarget)?.to_owned());
            }
        }
        Ok(target)
    }
}

impl AlertsPage {
    fn title(&self) -> String {
        match &self.key {
            Some(key) => key.name.clone(),
            None => fill(
                self.page.texts.alerts.of_account,
                &self.account.account.name,
            ),
        }
    }

    fn has_cap(&self) -> bool {
        match &self.key {
            Some(key) => !key.unlimited_quota,
            None => !self.account.account.unlimited_quota,
        }
    }

    /// One may get mail oneself.
    fn is_proven(&self) -> bool {
        let recipients = self.recipients.iter().flatten();
        let mut own = recipients.filter(|recipient| recipient.own_email.is_some());
        own.next().is_some() || self.page.is_admin
    }

    /// Where an alert goes.
    fn target(&self, alert: &AlertView) -> String {
        let texts = &self.page.texts.alerts;
        let own = self.page.person.as_ref().map(|person| &person.handle);
        match (&alert.person, &alert.email) {
            (Some(handle), _) if own == Some(handle) => texts.mail_to_you.to_owned(),
            (Some(to), _) | (None, Some(to)) => fill(texts.mail_to, to),
            (None, None) => texts.webhook_to.to_owned(),
        }
    }

    /// What became of the last message.
    fn last(&self, alert: &AlertView) -> Option<String> {
        let texts = &self.page.texts.alerts;
        let last = alert.last.as_ref()?;
        let text = match (last.sent, last.percent) {
            (true, Some(percent)) => fill(texts.told, percent),
            (true, None) => texts.test_sent.to_owned(),
            (false, Some(percent)) => fill(texts.failed, percent),
            (false, None) => texts.test_failed.to_owned(),
        };
        Some(text)
    }

    fn reason(&self, alert: &AlertView) -> Option<String> {
        let reason = alert.last.as_ref()?.reason.as_deref()?;
        Some(self.page.texts.alert_failure(reason))
    }

    fn may_delete(&self, alert: &AlertView) -> bool {
        let own = self.page.person.as_ref().map(|person| &person.handle);
        alert.may_change || alert.person.is_some() && alert.person.as_ref() == own
    }

    fn is_chosen(&self, to: &str) -> bool {
        match self.form.to.as_str() {
            // Where there is no mail, it is the only choice.
            "" => to == "webhook" && !self.has_mail,
            chosen => chosen == to,
        }
    }

    /// Without a choice it is oneself.
    fn is_person_chosen(&self, person: &AlertRecipientView) -> bool {
        match self.form.to.strip_prefix("person:") {
            Some(handle) => handle == person.handle,
            None => self.form.to.is_empty() && person.own_email.is_some(),
        }
    }
}

pub async fn show_of_key(visit: Visit, Path(id): Path<String>) -> Response {
    show(visit, of_key(id), AlertForm::new(), None).await
}

pub async fn show_of_account(visit: Visit, Path(account): Path<String>) -> Response {
    show(visit, of_account(account), AlertForm::new(), None).await
}

pub async fn create_of_key(
    visit: Visit,
    Path(id): Path<String>,
    Form(form): Form<AlertForm>,
) -> Response {
    create(visit, of_key(id), form).await
}

pub async fn create_of_account(
    visit: Visit,
    Path(account): Path<String>,
    Form(form): Form<AlertForm>,
) -> Response {
    create(visit, of_account(account), form).await
}

fn of_key(key: String) -> AlertsInput {
    AlertsInput {
        key,
        account: String::new(),
    }
}

fn of_account(account: String) -> AlertsInput {
    AlertsInput {
        key: String::new(),
        account,
    }
}

async fn show(
    visit: Visit,
    of: AlertsInput,
    form: AlertForm,
    problem: Option<&Refusal>,
) -> Response {
    let call = &visit.call;
    let found = async {
        let key = match of.key.as_str() {
            "" => None,
            id => Some(keys::get_key(call, id).await?),
        };
        let account = key.as_ref().map_or(&of.account, |key| &key.account);
        let account = accounts::get_account(call, account).await?;
        let alerts = alerts::list_alerts(call, &of).await?;
        Ok::<_, Refusal>((key, account, alerts))
    };
    let (key, account, alerts) = match found.await {
        Ok(found) => found,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let name = &account.account.name;
    let may_make = match key {
        Some(_) => call.check_may_write(name).await.is_ok(),
        None => call.check_may_manage(name).await.is_ok(),
    };
    let recipients = match may_make {
        true => alerts::list_recipients(call, name).await.ok(),
        false => None,
    };
    let account_path = format!("/accounts/{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
    let (path, back) = match &key {
        Some(key) => (
            format!("/keys/{}/alerts", key.id),
            format!("/keys/{}", key.id),
        ),
        None => (
            format!("{account_path}/alerts"),
            format!("{account_path}/keys"),
        ),
    };
    let has_mail = call.console.mailer().is_ok();
    let page = visit.page.in_section(SECTION);
    let page = match problem {
        Some(refusal) => page.with_problem(refusal),
        None => page,
    };
    let template = AlertsPage {
        page,
        key,
        account,
        alerts,
        recipients,
        has_mail,
        form,
        back,
        path,
    };
    render(&template, problem.map_or(StatusCode::OK, status_of))
}

async fn create(visit: Visit, of: AlertsInput, form: AlertForm) -> Response {
    let created = async {
        let (percents, target) = (form.percents()?, form.target()?);
        alerts::create_alert(&visit.call, &of, Some(&percents), &target).await
    };
    match created.await {
        Ok(made) => done(visit, made, &form.next),
        Err(refusal @ (Refusal::Invalid(_) | Refusal::TooManyAlerts(_) | Refusal::MailOff)) => {
            show(visit, of, form, Some(&refusal)).await
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

/// The page that shows a secret: the response itself, for it is shown once.
fn done(visit: Visit, made: AlertWithSecret, next: &str) -> Response {
    let next = local_path(next);
    match made.secret {
        Some(secret) => {
            let template = AlertSecretPage {
                page: visit.page.in_section(SECTION),
                secret,
                next: next.to_owned(),
            };
            render(&template, StatusCode::CREATED)
        }
        None => Redirect::to(&format!("{next}?note=saved")).into_response(),
    }
}

pub async fn change(
    mut visit: Visit,
    Path(id): Path<String>,
    Form(form): Form<AlertForm>,
) -> Response {
    let changed = async {
        let percents = form.percents()?;
        alerts::change_alert(&visit.call, &id, Some(&percents), None).await
    };
    match changed.await {
        Ok(made) => done(visit, made, &form.next),
        Err(refusal) => {
            local_path(&form.next).clone_into(&mut visit.page.path);
            visit.refuse(&refusal)
        }
    }
}

pub async fn delete(visit: Visit, Path(id): Path<String>, Form(form): Form<AlertForm>) -> Response {
    let next = local_path(&form.next);
    match alerts::delete_alert(&visit.call, &id).await {
        Ok(()) => Redirect::to(&format!("{next}?note=alert-deleted")).into_response(),
        Err(refusal) => visit.refuse(&refusal),
    }
}

pub async fn test(visit: Visit, Path(id): Path<String>, Form(form): Form<AlertForm>) -> Response {
    let next = local_path(&form.next);
    match alerts::test_alert(&visit.call, &id).await {
        Ok(tested) if tested.sent => {
            Redirect::to(&format!("{next}?note=alert-tested")).into_response()
        }
        // The page says beside the alert why it was not sent.
        Ok(_) => Redirect::to(next).into_response(),
        Err(refusal) => visit.refuse(&refusal),
    }
}
